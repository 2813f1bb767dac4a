"""Data layouts other than chunks: compact, contiguous, external files, virtual datasets."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
from h5py import h5d, h5s

from .catalogue import sample
from .writing import EARLIEST_AND_LATEST, V110_AND_LATEST, dataset_properties, new_dataset, new_file, numbers


@sample(
    "layout_compact_{libver}.h5",
    "compact data: scalar, small, 1 KiB, text, never written (libver {libver})",
    libver=EARLIEST_AND_LATEST,
)
def compact(path: Path, libver: str) -> None:
    dcpl = dataset_properties(layout=h5d.COMPACT)
    with new_file(path, libver) as file:
        new_dataset(file, "scalar", "<i4", (), dcpl)[()] = 42
        new_dataset(file, "small", ">i2", (2, 3), dcpl)[...] = numbers((2, 3))
        new_dataset(file, "one_KiB", "<f4", (256,), dcpl)[:] = numbers((256,))
        new_dataset(file, "text", h5py.string_dtype(), (2,), dcpl)[:] = ["one", "two"]
        new_dataset(file, "never_written", "<i4", (3,), dataset_properties(layout=h5d.COMPACT, fill=np.int32(5)))


@sample(
    "layout_contiguous_{libver}.h5",
    "contiguous data: written, never written, allocated early, empty (libver {libver})",
    libver=EARLIEST_AND_LATEST,
)
def contiguous(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        file["written"] = numbers((4, 5), "<f8")
        file["scalar"] = np.float32(1.5)
        new_dataset(file, "never_written", "<i4", (4,), dataset_properties(fill=np.int32(3)))
        early = dataset_properties(fill=np.int32(3), alloc_time=h5d.ALLOC_TIME_EARLY)
        new_dataset(file, "allocated_early", "<i4", (4,), early)
        file.create_dataset("empty", (0, 4), "<i4")


@sample(
    "layout_external.h5",
    "raw data in two other files, at an offset in the second; past its end libhdf5 reads zeros",
    companions=("layout_external_1.raw", "layout_external_2.raw"),
)
def external(path: Path) -> None:
    first, second = (path.with_name(f"{path.stem}_{number}.raw") for number in (1, 2))
    first.write_bytes(numbers((6,), "<i4").tobytes())
    second.write_bytes(b"not data" + numbers((10,), "<i4")[6:].tobytes())
    dcpl = dataset_properties(fill=np.int32(-1))
    dcpl.set_external(first.name.encode(), 0, 24)
    dcpl.set_external(second.name.encode(), 8, h5s.UNLIMITED)
    with new_file(path) as file:
        new_dataset(file, "external", "<i4", (3, 4), dcpl)
        file["internal"] = numbers((3,))


@sample("virtual_sources.h5", "what the virtual datasets point to; an ordinary file")
def virtual_sources(path: Path) -> None:
    with new_file(path) as file:
        file["a"] = numbers((4,), "<i4")
        file["b"] = numbers((4, 6), "<i4")
        for block in range(2):
            file[f"block_{block}"] = numbers((3,), "<i4") + 100 * block
        file.create_dataset("growing", data=numbers((5, 2), "<i4"), maxshape=(None, 2), chunks=(2, 2))


@sample(
    "virtual_{libver}.h5",
    "virtual dataset: whole sources, strides, this file, gaps, a missing source (libver {libver})",
    libver=V110_AND_LATEST,
)
def virtual(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        file["here"] = numbers((4,), "<i4") + 50
        layout = h5py.VirtualLayout((6, 6), "<i4")
        a = h5py.VirtualSource("virtual_sources.h5", "a", (4,))
        b = h5py.VirtualSource("virtual_sources.h5", "b", (4, 6))
        layout[0, :4] = a
        layout[1, 1:5] = h5py.VirtualSource(".", "here", (4,))
        layout[2:4, ::2] = b[::2, :3]
        layout[4, :4] = h5py.VirtualSource("there_is_no_such_file.h5", "a", (4,))
        file.create_virtual_dataset("virtual", layout, fillvalue=-5)

        one_source = h5py.VirtualLayout((4,), "<i4")
        one_source[...] = a
        file.create_virtual_dataset("one_source", one_source)


@sample(
    "virtual_unlimited_{libver}.h5",
    "virtual dataset: unlimited selection, and printf-style source names (libver {libver})",
    libver=V110_AND_LATEST,
)
def virtual_unlimited(path: Path, libver: str) -> None:
    endless = h5s.UNLIMITED
    with new_file(path, libver) as file:
        source = h5s.create_simple((5, 2), (endless, 2))
        source.select_hyperslab((0, 0), (endless, 1), block=(1, 2))
        target = h5s.create_simple((5, 2), (endless, 2))
        target.select_hyperslab((0, 0), (endless, 1), block=(1, 2))
        dcpl = dataset_properties()
        dcpl.set_virtual(target, b"virtual_sources.h5", b"growing", source)
        new_dataset(file, "growing", "<i4", (5, 2), dcpl, maxshape=(None, 2))

        source = h5s.create_simple((3,))
        target = h5s.create_simple((6,), (endless,))
        target.select_hyperslab((0,), (endless,), stride=(3,), block=(3,))
        dcpl = dataset_properties(fill=np.int32(-1))
        dcpl.set_virtual(target, b"virtual_sources.h5", b"block_%b", source)
        new_dataset(file, "blocks", "<i4", (6,), dcpl, maxshape=(None,))


@sample(
    "virtual_irregular_{libver}.h5",
    "virtual dataset: irregular selections, two mappings that interleave (libver {libver})",
    libver=V110_AND_LATEST,
)
def virtual_irregular(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        source = h5s.create_simple((4, 6))
        source.select_hyperslab((0, 0), (2, 2))
        source.select_hyperslab((3, 1), (1, 4), op=h5s.SELECT_OR)
        target = h5s.create_simple((10,))
        target.select_hyperslab((0,), (4,), stride=(2,))
        target.select_hyperslab((6 + 1,), (1,), op=h5s.SELECT_OR)
        target.select_hyperslab((8,), (2,), op=h5s.SELECT_OR)
        target.select_hyperslab((1,), (1,), op=h5s.SELECT_OR)
        dcpl = dataset_properties(fill=np.int32(-1))
        dcpl.set_virtual(target, b"virtual_sources.h5", b"b", source)
        new_dataset(file, "irregular", "<i4", (10,), dcpl)

        layout = h5py.VirtualLayout((8,), "<i4")
        a = h5py.VirtualSource("virtual_sources.h5", "a", (4,))
        layout[::2], layout[1::2] = a, a
        file.create_virtual_dataset("interleaved", layout)

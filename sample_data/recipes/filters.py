"""Filters: those of libhdf5, those of plugins, their order, and chunks that skip some of them."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from h5py import h5p, h5t, h5z

from .catalogue import Unavailable, sample
from .writing import (
    EARLIEST_AND_LATEST,
    dataset_properties,
    new_dataset,
    new_file,
    numbers,
    optional_module,
    write_values,
)

VALUES = numbers((200,), "<i4") // 3
CHUNK_SHAPE = (120,)  # the second chunk is partial


@sample(
    "filters_standard_{libver}.h5",
    "shuffle, deflate, fletcher32 and LZF, alone and in pipelines (libver {libver})",
    libver=EARLIEST_AND_LATEST,
)
def standard(path: Path, libver: str) -> None:
    pipelines: dict[str, dict[str, object]] = {
        "deflate": {"compression": "gzip"},
        "shuffle": {"shuffle": True},
        "fletcher32": {"fletcher32": True},
        "lzf": {"compression": "lzf"},
        "shuffle_deflate": {"shuffle": True, "compression": 9},
        "shuffle_lzf_fletcher32": {"shuffle": True, "compression": "lzf", "fletcher32": True},
        "shuffle_deflate_fletcher32": {"shuffle": True, "compression": "gzip", "fletcher32": True},
    }
    with new_file(path, libver) as file:
        for name, pipeline in pipelines.items():
            file.create_dataset(name, data=VALUES, chunks=CHUNK_SHAPE, **pipeline)


@sample(
    "filters_unusual_order.h5", "pipelines in an unusual order: deflate before shuffle, deflate twice, checksum first"
)
def unusual_order(path: Path) -> None:
    pipelines: dict[str, Callable[[h5p.PropDCID], object]] = {
        "deflate_then_shuffle": lambda dcpl: (dcpl.set_deflate(4), dcpl.set_shuffle()),
        "fletcher32_then_deflate": lambda dcpl: (dcpl.set_fletcher32(), dcpl.set_deflate(4)),
        "shuffle_twice": lambda dcpl: (dcpl.set_shuffle(), dcpl.set_shuffle()),
        "deflate_twice": lambda dcpl: (dcpl.set_deflate(4), dcpl.set_deflate(4)),
    }
    with new_file(path, "v110") as file:
        for name, configure in pipelines.items():
            dcpl = dataset_properties(CHUNK_SHAPE)
            configure(dcpl)
            new_dataset(file, name, "<i4", VALUES.shape, dcpl)[:] = VALUES


@sample("filters_scaleoffset.h5", "scale-offset: integers, floats, big-endian, with a fill value")
def scaleoffset(path: Path) -> None:
    with new_file(path, "v110") as file:
        file.create_dataset("integers", data=VALUES, chunks=CHUNK_SHAPE, scaleoffset=0)
        file.create_dataset("integers_big_endian", data=VALUES.astype(">i2"), chunks=CHUNK_SHAPE, scaleoffset=0)
        file.create_dataset("integers_deflate", data=VALUES, chunks=CHUNK_SHAPE, scaleoffset=0, compression="gzip")
        file.create_dataset("signed_8_bits", data=VALUES - 33, chunks=CHUNK_SHAPE, scaleoffset=8, dtype="<i2")
        file.create_dataset("constant", data=np.full(200, 7, "u1"), chunks=CHUNK_SHAPE, scaleoffset=0)
        file.create_dataset("floats", data=(VALUES / 4).astype("<f4"), chunks=CHUNK_SHAPE, scaleoffset=2)
        file.create_dataset("doubles", data=VALUES / 4 - 10, chunks=CHUNK_SHAPE, scaleoffset=1)
        filled = file.create_dataset("filled", (200,), "<i4", chunks=CHUNK_SHAPE, scaleoffset=0, fillvalue=-1)
        filled[:50] = VALUES[:50]


@sample("filters_nbit.h5", "n-bit: integers with precision and offset, a float of 20 bits, a compound")
def nbit(path: Path) -> None:
    def nbit_properties() -> h5p.PropDCID:
        dcpl = dataset_properties(CHUNK_SHAPE)
        dcpl.set_filter(h5z.FILTER_NBIT)
        return dcpl

    with new_file(path, "v110") as file:
        for name, base in (("u12_at_bit_4", h5t.STD_U16LE), ("i12_at_bit_4_big_endian", h5t.STD_I32BE)):
            twelve_bits = base.copy()
            twelve_bits.set_precision(12)
            twelve_bits.set_offset(4)
            write_values(new_dataset(file, name, twelve_bits, (200,), nbit_properties()), VALUES)
        write_values(new_dataset(file, "whole_i32", "<i4", (200,), nbit_properties()), VALUES)
        twenty_bits = h5t.IEEE_F32LE.copy()
        twenty_bits.set_fields(26, 20, 6, 7, 13)
        twenty_bits.set_offset(7)
        twenty_bits.set_precision(20)
        twenty_bits.set_ebias(31)
        write_values(new_dataset(file, "f20", twenty_bits, (200,), nbit_properties()), VALUES.astype("<f4"))
        pair = np.dtype([("a", "<i2"), ("b", "<f4")])
        rows = np.zeros(200, pair)
        rows["a"], rows["b"] = VALUES, VALUES / 2
        new_dataset(file, "compound", pair, (200,), nbit_properties())[:] = rows


@sample("filters_szip.h5", "szip: entropy coding and nearest neighbour, several pixel sizes, both byte orders")
def szip(path: Path) -> None:
    if not h5z.filter_avail(h5z.FILTER_SZIP) or not h5z.get_filter_info(h5z.FILTER_SZIP) & 1:
        raise Unavailable("libhdf5 was built without the szip encoder")
    with new_file(path, "v110") as file:
        for coding in ("nn", "ec"):
            for code in ("u1", "<i2", ">i4", "<f4", "<f8"):
                options = (coding, 8)
                word = code.replace("<", "little_").replace(">", "big_")
                values = (VALUES % 128).astype(code)
                file.create_dataset(
                    f"{coding}_{word}", data=values, chunks=CHUNK_SHAPE, compression="szip", compression_opts=options
                )
        file.create_dataset("two_dimensions", data=numbers((12, 10), "<i2"), chunks=(5, 8), compression="szip")


@sample(
    "filters_skipped_{libver}.h5",
    "filter masks: chunks that skip one filter or all of them (libver {libver})",
    libver=(*EARLIEST_AND_LATEST, "v110"),
)
def skipped(path: Path, libver: str) -> None:
    """Chunk 0 has all filters, chunk 1 no shuffle, chunk 2 no deflate, chunk 3 none, chunk 4 is missing."""
    with new_file(path, libver) as file:
        for name, maxshape in (("bounded", (200,)), ("growing", (None,)), ("two_axes", (None, None))):
            rank = len(maxshape)
            shape, chunk_shape = ((200,), (40,)) if rank == 1 else ((200, 2), (40, 2))
            dataset = file.create_dataset(
                name,
                shape,
                "<i4",
                chunks=chunk_shape,
                maxshape=maxshape,
                shuffle=True,
                compression="gzip",
                fillvalue=-1,
            )
            values = numbers(shape, "<i4")
            dataset[:40] = values[:40]
            for chunk, mask in ((1, 0b01), (2, 0b10), (3, 0b11)):
                plain = values[40 * chunk : 40 * chunk + 40]
                bytes_ = plain.tobytes() if mask & 0b01 else plain.reshape(-1).view("u1").reshape(-1, 4).T.tobytes()
                stored = bytes_ if mask & 0b10 else zlib.compress(bytes_)
                origin = (40 * chunk, *(0,) * (rank - 1))
                dataset.id.write_direct_chunk(origin, stored, filter_mask=mask)


@sample("filters_optional_failed.h5", "chunks where an optional filter gave up by itself: LZF on noise")
def optional_failed(path: Path) -> None:
    noise = np.random.default_rng(4).integers(0, 256, 100, "u1")
    with new_file(path) as file:
        data = np.concatenate([np.zeros(100, "u1"), noise])
        file.create_dataset("lzf", data=data, chunks=(100,), compression="lzf")
        file.create_dataset("shuffle_lzf", data=data.view("<i2"), chunks=(50,), compression="lzf", shuffle=True)


@sample("filters_unknown.h5", "a filter that no library has (number 32767), all chunks stored without it")
def unknown(path: Path) -> None:
    with new_file(path) as file:
        dcpl = dataset_properties((4,))
        dcpl.set_filter(32767, h5z.FLAG_OPTIONAL, (1, 2, 3))
        dataset = new_dataset(file, "dataset", "<i4", (8,), dcpl)
        for origin in (0, 4):
            dataset.id.write_direct_chunk((origin,), numbers((4,), "<i4").tobytes(), filter_mask=1)


@sample("filters_plugins.h5", "filters of hdf5plugin: zstd, lz4, bitshuffle, blosc, blosc2, bzip2")
def plugins(path: Path) -> None:
    hdf5plugin = optional_module("hdf5plugin")
    with new_file(path, "v110") as file:
        for name, pipeline in {
            "zstd": hdf5plugin.Zstd(clevel=3),
            "lz4": hdf5plugin.LZ4(),
            "bitshuffle": hdf5plugin.Bitshuffle(cname="none"),
            "bitshuffle_lz4": hdf5plugin.Bitshuffle(cname="lz4"),
            "bitshuffle_zstd": hdf5plugin.Bitshuffle(cname="zstd"),
            "blosc_lz4_shuffle": hdf5plugin.Blosc(cname="lz4", clevel=5, shuffle=hdf5plugin.Blosc.SHUFFLE),
            "blosc_zlib_bitshuffle": hdf5plugin.Blosc(cname="zlib", clevel=5, shuffle=hdf5plugin.Blosc.BITSHUFFLE),
            "blosc_zstd": hdf5plugin.Blosc(cname="zstd", clevel=5, shuffle=hdf5plugin.Blosc.NOSHUFFLE),
            "blosc2": hdf5plugin.Blosc2(),
            "bzip2": hdf5plugin.BZip2(),
        }.items():
            file.create_dataset(name, data=VALUES, chunks=CHUNK_SHAPE, **pipeline)
        file.create_dataset("shuffle_zstd", data=VALUES, chunks=CHUNK_SHAPE, shuffle=True, **hdf5plugin.Zstd())


@sample("filters_plugins_lossy.h5", "lossy filters of hdf5plugin: zfp (also reversible), sz3")
def plugins_lossy(path: Path) -> None:
    hdf5plugin = optional_module("hdf5plugin")
    values = np.sin(np.arange(200) / 20).astype("<f4")
    with new_file(path, "v110") as file:
        file.create_dataset("zfp_reversible", data=values, chunks=CHUNK_SHAPE, **hdf5plugin.Zfp(reversible=True))
        file.create_dataset("zfp_accuracy", data=values, chunks=CHUNK_SHAPE, **hdf5plugin.Zfp(accuracy=1e-3))
        file.create_dataset("sz3", data=values, chunks=CHUNK_SHAPE, **hdf5plugin.SZ3(absolute=1e-3))

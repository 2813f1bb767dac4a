"""Chunks as h5py writes them, read by zarr with the codecs that `encode_filters` names."""

from __future__ import annotations

import hdf5plugin
import numpy as np
import pytest

from h5zarr.zarr_model.codecs import encode_filters
from tests.codecs.zarr_arrays import read_v2, read_v3, v2_of
from tests.filters.written import DTYPES, PIPELINES, SHAPES, Setting, numbers, plugin, write

TYPED: dict[str, tuple[str, Setting]] = {
    "szip": ("<i4", lambda dcpl: dcpl.set_szip(32, 16)),
    "szip, big-endian": (">i4", lambda dcpl: dcpl.set_szip(4, 8)),
    "scaleoffset": (">i4", lambda dcpl: dcpl.set_scaleoffset(2, 0)),
    "scaleoffset of floats": ("<f4", lambda dcpl: dcpl.set_scaleoffset(0, 2)),
    "zfp": ("<f8", plugin(hdf5plugin.Zfp(accuracy=0.001))),
    "zfp of a rate": ("<f4", plugin(hdf5plugin.Zfp(rate=11))),
}
OWN = ("lzf", "lz4", "bitshuffle", "bitshuffle, lz4", "bitshuffle, zstd", "blosc2", "nbit", "deflate, shuffle")


@pytest.mark.parametrize("settings", PIPELINES.values(), ids=PIPELINES)
def test_zarr_reads_any_element_in_any_chunk(settings: tuple[Setting, ...]) -> None:
    for dtype in DTYPES.values():
        for shape in SHAPES[1::2]:
            values = numbers(shape, dtype)
            chunk = write(values, *settings)
            applied = [one for position, one in enumerate(chunk.filters) if not chunk.mask >> position & 1]
            codecs = encode_filters(applied, nbytes=values.nbytes)
            assert read_v3(chunk.content, codecs, values.dtype, shape) == values.tobytes()


@pytest.mark.parametrize(("dtype", "setting"), TYPED.values(), ids=TYPED)
def test_zarr_reads_filters_that_know_the_type(dtype: str, setting: Setting) -> None:
    chunk = write(numbers((13, 40), dtype), setting)
    codecs = encode_filters(chunk.filters, nbytes=chunk.nbytes)
    assert read_v3(chunk.content, codecs, np.dtype(dtype), (13, 40)) == chunk.plain
    assert read_v2(chunk.content, [v2_of(codec) for codec in codecs], np.dtype(dtype), (13, 40)) == chunk.plain


@pytest.mark.parametrize("name", OWN)
def test_zarr_reads_them_in_version_2_too(name: str) -> None:
    values = numbers((13, 41), "<i4")
    chunk = write(values, *PIPELINES[name])
    codecs = encode_filters(chunk.filters, nbytes=chunk.nbytes)
    assert read_v2(chunk.content, [v2_of(codec) for codec in codecs], values.dtype, (13, 41)) == values.tobytes()

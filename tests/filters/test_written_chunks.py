"""Chunks of every filter as h5py writes them are undone to what libhdf5 reads, and what we encode, libhdf5 reads."""

from __future__ import annotations

import h5py
import hdf5plugin
import numpy as np
import pytest
from h5py import h5t

from h5zarr.filters import szip, zfp
from h5zarr.filters.pipeline import redo_filters, undo_filters
from tests.filters.written import (
    DTYPES,
    PIPELINES,
    SHAPES,
    Setting,
    numbers,
    plugin,
    properties,
    read_by_hdf5,
    write,
    write_with,
)


@pytest.mark.parametrize("settings", PIPELINES.values(), ids=PIPELINES)
def test_any_element_in_any_chunk_is_restored(settings: tuple[Setting, ...]) -> None:
    for dtype in DTYPES.values():
        for shape in SHAPES:
            values = numbers(shape, dtype)
            chunk = write(values, *settings)
            assert undo_filters(chunk.content, chunk.filters, chunk.mask, chunk.nbytes) == values.tobytes()


@pytest.mark.parametrize("settings", PIPELINES.values(), ids=PIPELINES)
def test_libhdf5_reads_what_is_encoded(settings: tuple[Setting, ...]) -> None:
    for dtype in ("i1", "<i4", ">f8"):
        values = numbers((13, 40), dtype)
        content = redo_filters(values.tobytes(), write(values, *settings).filters)
        assert read_by_hdf5(values, properties(values.shape, *settings), content) == values.tobytes()


def szip_setting(coding: int, pixels_per_block: int) -> Setting:
    return lambda dcpl: dcpl.set_szip(coding, pixels_per_block)


@pytest.mark.parametrize("pixels_per_block", [2, 8, 10, 32])
@pytest.mark.parametrize("coding", [h5py.h5z.SZIP_EC_OPTION_MASK, h5py.h5z.SZIP_NN_OPTION_MASK], ids=["ec", "nn"])
def test_szip_pads_and_shuffles_as_libaec_does(coding: int, pixels_per_block: int) -> None:
    """Rows of a chunk are scan lines; some are whole blocks, some are not, some are split, and some are joined."""
    for dtype in ("i1", "<u2", "<i4", ">i4", "<f4", ">f8", "<i8"):
        for shape in ((64,), (1031,), (5000,), (12, 10), (9, 33), (13, 1, 37), (40, 3)):
            values = numbers(shape, dtype)
            dcpl = properties(shape, szip_setting(coding, pixels_per_block))
            chunk = write_with(values, dcpl)
            assert undo_filters(chunk.content, chunk.filters, chunk.mask, chunk.nbytes) == values.tobytes()
            encoded = szip.encode(values.tobytes(), chunk.filters[0].values)
            assert read_by_hdf5(values, dcpl, encoded) == values.tobytes()
            if not chunk.mask:
                assert encoded == chunk.content


@pytest.mark.parametrize("nbits", [3, 10, 17, 23, 24])
def test_szip_has_pixels_of_few_bits(nbits: int) -> None:
    datatype = h5t.STD_U32LE.copy() if nbits > 16 else h5t.STD_U16LE.copy() if nbits > 8 else h5t.STD_U8LE.copy()
    datatype.set_precision(nbits)
    values = np.random.default_rng(0).integers(0, 1 << nbits, 300).astype(f"<u{datatype.get_size()}")
    chunk = write(values, szip_setting(h5py.h5z.SZIP_NN_OPTION_MASK, 16), datatype=datatype)
    assert undo_filters(chunk.content, chunk.filters, chunk.mask, chunk.nbytes) == chunk.plain


ZFP = {
    "accuracy": hdf5plugin.Zfp(accuracy=0.01),
    "precision": hdf5plugin.Zfp(precision=13),
    "rate": hdf5plugin.Zfp(rate=9.5),
    "reversible": hdf5plugin.Zfp(reversible=True),
    "expert": hdf5plugin.Zfp(minbits=20, maxbits=600, maxprec=20, minexp=-12),
}


@pytest.mark.parametrize("made", ZFP.values(), ids=ZFP)
def test_zfp_gives_exactly_the_values_that_hdf5_gives(made: dict[str, object]) -> None:
    for dtype in ("<i4", "<i8", "<f4", "<f8"):
        for shape in ((2,), (7,), (1031,), (12, 10), (13, 1, 37), (5, 6, 7), (3, 4, 5, 6)):
            chunk = write(numbers(shape, dtype) * 3, plugin(made))
            assert chunk.filters[0].number == 32013
            assert undo_filters(chunk.content, chunk.filters, chunk.mask, chunk.nbytes) == chunk.plain


@pytest.mark.parametrize("mode", ["accuracy", "precision", "rate", "reversible"])
def test_libhdf5_reads_what_zfp_encodes(mode: str) -> None:
    for dtype in ("<f4", "<f8"):
        values = numbers((13, 9, 10), dtype)
        dcpl = properties(values.shape, plugin(ZFP[mode]))
        chunk = write_with(values, dcpl)
        encoded = zfp.encode(values.tobytes(), chunk.filters[0].values)
        assert read_by_hdf5(values, dcpl, encoded) == chunk.plain


def test_zfp_cannot_write_with_parameters_of_no_mode() -> None:
    chunk = write(numbers((40,), "<f4"), plugin(ZFP["expert"]))
    with pytest.raises(ValueError, match="can be read, but not written"):
        zfp.encode(chunk.plain, chunk.filters[0].values)

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from h5py import h5t
from hypothesis import given, settings
from hypothesis import strategies as st

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.filters import nbit
from h5zarr.filters.pipeline import undo_filters
from tests.filters.written import NBIT, write_elements

COUNT = 37


def number(base: h5t.TypeID, precision: int, bit_offset: int) -> h5t.TypeID:
    datatype = base.copy()
    datatype.set_precision(precision)
    datatype.set_offset(bit_offset)
    return datatype


def compound(nbytes: int, *members: tuple[int, h5t.TypeID]) -> h5t.TypeID:
    datatype = h5t.create(h5t.COMPOUND, nbytes)
    for position, member in members:
        datatype.insert(f"at {position}".encode(), position, member)
    return datatype


U12, I20BE = number(h5t.STD_U16LE, 12, 3), number(h5t.STD_I32BE, 20, 5)
TEXT = h5t.C_S1.copy()
TEXT.set_size(5)
PAIR = compound(9, (1, U12), (4, I20BE))
DATATYPES = {
    "u1, 3 bits": number(h5t.STD_U8LE, 3, 2),
    "u2 little": U12,
    "u2 big": number(h5t.STD_U16BE, 9, 7),
    "i4 little": number(h5t.STD_I32LE, 17, 0),
    "i4 big": I20BE,
    "i8 within two bytes": number(h5t.STD_I64LE, 5, 30),
    "i8 within one byte": number(h5t.STD_I64BE, 4, 33),
    "i4 whole": h5t.STD_I32LE,
    "text": TEXT,
    "array": h5t.array_create(U12, (2, 3)),
    "array of arrays": h5t.array_create(h5t.array_create(I20BE, (2,)), (3,)),
    "array of compounds": h5t.array_create(PAIR, (3,)),
    "compound with gaps": compound(20, (1, U12), (4, I20BE), (9, h5t.STD_I16LE), (13, TEXT)),
    "compound of compounds": compound(24, (0, PAIR), (9, U12), (12, PAIR)),
    "compound with an array": compound(14, (0, h5t.array_create(U12, (4,))), (9, I20BE)),
    "compound ending with an array of compounds": compound(31, (1, U12), (4, h5t.array_create(PAIR, (3,)))),
    "array of text": compound(18, (0, h5t.array_create(TEXT, (3,))), (16, U12)),
}


def noise(nbytes: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (COUNT, nbytes), np.uint8)


@pytest.mark.parametrize("datatype", DATATYPES.values(), ids=DATATYPES)
def test_bits_go_where_libhdf5_puts_them(datatype: h5t.TypeID) -> None:
    """Noise is written in the dataset's own type, so that nothing is converted; what is not significant is lost."""
    elements = noise(datatype.get_size())
    chunk = write_elements(elements, datatype, NBIT)
    assert undo_filters(chunk.content, chunk.filters, chunk.mask, chunk.nbytes) == chunk.plain
    assert nbit.encode(elements.tobytes(), chunk.filters[0].values) == chunk.content
    settings = nbit.Settings.from_values(chunk.filters[0].values)
    assert nbit.Settings.from_values(settings.to_values()) == settings


def test_what_libhdf5_stores_wrongly_is_refused() -> None:
    """It loses its place behind an array of compounds, and with it what follows."""
    elements = noise(30)
    chunk = write_elements(elements, compound(30, (0, h5t.array_create(PAIR, (3,))), (28, U12)), NBIT)
    lost = np.frombuffer(chunk.plain, np.uint8).reshape(-1, 30)[:, 28:].copy().view("<u2")
    assert (lost != elements[:, 28:].copy().view("<u2") & 0x7FF8).any()
    with pytest.raises(MalformedFile, match="which libhdf5 stores wrongly"):
        undo_filters(chunk.content, chunk.filters, chunk.mask, chunk.nbytes)


@st.composite
def layouts(draw: st.DrawFn, depth: int = 0) -> dict[str, Any]:
    kinds = ["number", "whole", "compound", "array"] if depth < 2 else ["number", "whole"]
    kind = draw(st.sampled_from(kinds))
    if kind == "number":
        nbytes = draw(st.sampled_from([1, 2, 3, 4, 8]))
        precision = draw(st.integers(1, 8 * nbytes))
        bit_offset = draw(st.integers(0, 8 * nbytes - precision))
        order = draw(st.sampled_from(["little", "big"]))
        return {"kind": kind, "nbytes": nbytes, "byte_order": order, "precision": precision, "bit_offset": bit_offset}
    if kind == "array":
        base = draw(layouts(3))  # of numbers, since libhdf5 cannot do others everywhere
        return {"kind": kind, "nbytes": base["nbytes"] * (1 if base["kind"] == "whole" else 3), "base": base}
    if kind == "compound":
        members, end = [], 0
        for _ in range(draw(st.integers(1, 3))):
            position = end + draw(st.integers(0, 2))
            layout = draw(layouts(depth + 1))
            members.append({"position": position, "layout": layout})
            end = position + layout["nbytes"]
        return {"kind": kind, "nbytes": end + draw(st.integers(0, 2)), "members": members}
    return {"kind": kind, "nbytes": draw(st.integers(1, 5))}


@settings(max_examples=60, deadline=None)
@given(layout=layouts(), count=st.integers(0, 70))
def test_significant_bits_survive_encoding(layout: dict[str, Any], count: int) -> None:
    chosen = nbit.Settings(count=count, layout=layout)
    values = chosen.to_values()
    assert nbit.Settings.from_values(values) == chosen
    content = np.random.default_rng(count).bytes(chosen.nbytes)
    once = nbit.decode(nbit.encode(content, values), values, len(content))
    assert len(once) == len(content)
    assert nbit.decode(nbit.encode(once, values), values, len(content)) == once


NUMBER = (1, 4, 0, 12, 0)


@pytest.mark.parametrize(
    "values",
    [
        (),
        (3, 0, 10),
        (9, 0, 10, *NUMBER),
        (8, 0, 10, 1, 4, 2, 12, 0),
        (8, 0, 10, 1, 4, 0, 33, 0),
        (8, 0, 10, 1, 4, 0, 30, 3),
        (8, 0, 10, 1, 4, 0, 0, 0),
        (8, 0, 10, 9, 4, 0, 12, 0),
        (10, 0, 10, 2, 7, *NUMBER),
        (12, 0, 10, 3, 4, 1, 1, *NUMBER),
        (3 + 100, 0, 10, *(2, 4) * 50),
    ],
)
def test_impossible_client_data_are_malformed(values: tuple[int, ...]) -> None:
    with pytest.raises(MalformedFile, match="impossible client data"):
        nbit.decode(bytes(100), values, 40)


def test_content_that_ends_early_is_malformed() -> None:
    with pytest.raises(MalformedFile, match="14 bytes do not hold 10 elements of 12 bits"):
        nbit.decode(bytes(14), (8, 0, 10, *NUMBER), 40)


def test_no_more_is_allocated_than_a_chunk_needs() -> None:
    with pytest.raises(MalformedFile, match="claims to hold 17179869180 bytes, but the chunk has 40"):
        nbit.decode(bytes(14), (8, 0, 2**32 - 1, *NUMBER), 40)


def test_huge_elements_are_unsupported() -> None:
    with pytest.raises(Unsupported, match="elements of 2000000 bytes"):
        nbit.decode(bytes(14), (18, 0, 1, 3, 2_000_000, 2, 0, *NUMBER, 4, *NUMBER), 2_000_000)

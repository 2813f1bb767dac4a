"""Random datasets of every type, layout, filter and fill value, made by hypothesis, and files with them.

Elements are written without conversion, so padding bits, NaN payloads and bytes after the end of a text are random,
too.
"""

from __future__ import annotations

import itertools
import random
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z
from hypothesis import strategies as st
from numcodecs.fletcher32 import Fletcher32

from sample_data.recipes import libhdf5

LZF, NBIT = h5z.FILTER_LZF, h5z.FILTER_NBIT
LIBVERS: list[Any] = ["earliest", ("v108", "v108"), ("v110", "v110"), "latest"]
DONT_FILTER_PARTIAL_CHUNKS = 2
HAS_SZIP = bool(
    h5z.filter_avail(h5z.FILTER_SZIP) and h5z.get_filter_info(h5z.FILTER_SZIP) & h5z.FILTER_CONFIG_ENCODE_ENABLED
)


def _odd_integer(base: Any, precision: int, offset: int) -> Any:
    made = base.copy()
    made.set_precision(precision)
    made.set_offset(offset)
    return made


def _string(nbytes: int, padding: int) -> Any:
    made = h5t.C_S1.copy()
    made.set_size(nbytes)
    made.set_strpad(padding)
    return made


def _float20() -> Any:
    made = h5t.IEEE_F32LE.copy()
    made.set_fields(26, 20, 6, 7, 13)
    made.set_offset(7)
    made.set_precision(20)
    made.set_ebias(31)
    return made


def _of(dtype: Any) -> Any:
    return h5t.py_create(np.dtype(dtype), logical=True)


def types() -> dict[str, Any]:
    """Return every type by name. They are made on demand, because HDF5 identifiers belong to a process."""
    numbers = {
        code: _of(code) for kind in "iu" for code in ("i1", "<i2", ">i4", "<i8", ">i8", "|u1", "<u2", ">u4", "<u8")
    }
    numbers |= {
        code: _of(code) for code in ("<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "<c8", ">c8", "<c16", ">c16", "?")
    }
    return numbers | {
        "i12 at 4": _odd_integer(h5t.STD_I16LE, 12, 4),
        "u7 at 1": _odd_integer(h5t.STD_U8LE, 7, 1),
        "i20 at 3, big": _odd_integer(h5t.STD_I32BE, 20, 3),
        "u33 at 0": _odd_integer(h5t.STD_U64LE, 33, 0),
        "f20": _float20(),
        "bits 1": h5t.STD_B8LE.copy(),
        "bits 2, big": h5t.STD_B16BE.copy(),
        "bits 8": h5t.STD_B64LE.copy(),
        "text, null-padded": _string(5, h5t.STR_NULLPAD),
        "text, null-terminated": _string(4, h5t.STR_NULLTERM),
        "text of one byte": _string(1, h5t.STR_NULLTERM),
        "text, space-padded": _string(6, h5t.STR_SPACEPAD),
        "text of any length": h5t.py_create(h5py.string_dtype(), logical=True),
        "opaque 3": _of("V3"),
        "datetime": h5t.py_create(np.dtype(h5py.opaque_dtype(np.dtype("<M8[s]"))), logical=True),
        "enum": h5t.py_create(h5py.enum_dtype({"A": 1, "B": -2}, "<i2"), logical=True),
        "enum, big": h5t.py_create(h5py.enum_dtype({"A": 1, "B": 70000}, ">u4"), logical=True),
        "array": _of((">i2", (2, 3))),
        "array of text": h5t.array_create(_string(3, h5t.STR_SPACEPAD), (2,)),
        "record": _of([("a", "<i2"), ("b", "<f8"), ("c", "S3")]),
        "record, big": _of([("a", "<i2"), ("b", ">f4")]),
        "record with gaps": _of(
            np.dtype({"names": ["p", "q"], "formats": ["i1", "<i8"], "offsets": [1, 8], "itemsize": 24})
        ),
        "record in a record": _of([("y", [("z", "u1"), ("w", "<i4")]), ("v", "<f4")]),
        "record of two floats": _of([("x", "<f4"), ("y", "<f4")]),
    }


TEXT_OF_ANY_LENGTH = "text of any length"
TYPE_NAMES = sorted(types())
INTEGERS = ("i1", "<i2", ">i4", "<i8", ">i8", "|u1", "<u2", ">u4", "<u8")


@dataclass(frozen=True)
class Described:
    """A dataset to be written. `written` and `masks` choose chunks by their position in the grid."""

    type_name: str
    shape: tuple[int, ...]
    seed: int
    layout: str = "contiguous"
    chunks: tuple[int, ...] = ()
    max_shape: tuple[int | None, ...] | None = None
    written: frozenset[int] = frozenset()
    filters: tuple[str, ...] = ()
    masks: dict[int, int] = field(default_factory=dict)
    fill: str = "default"
    fill_time: str = "ifset"
    early: bool = False
    edges_unfiltered: bool = False
    new_shape: tuple[int, ...] | None = None


# After other filters, these write past their buffers, because their input is no longer a chunk of elements.
FIRST = ("scaleoffset", "nbit", "szip") if HAS_SZIP else ("scaleoffset", "nbit")
BEHIND = ("shuffle", "deflate", "fletcher32", "lzf")
FILL_TIMES = {"ifset": h5d.FILL_TIME_IFSET, "alloc": h5d.FILL_TIME_ALLOC, "never": h5d.FILL_TIME_NEVER}


@st.composite
def described(draw: st.DrawFn) -> Described:
    name = draw(st.sampled_from(TYPE_NAMES))
    shape = tuple(draw(st.lists(st.integers(0, 6), max_size=4)))
    layout = (
        draw(st.sampled_from(["chunked", "chunked", "chunked", "contiguous", "compact"])) if shape else "contiguous"
    )
    common: dict[str, Any] = {
        "type_name": name,
        "seed": draw(st.integers(0, 1000)),
        "fill": draw(st.sampled_from(["default", "default", "user", "nan", "infinite"])),
        "fill_time": draw(st.sampled_from(sorted(FILL_TIMES))),
        "early": draw(st.booleans()),
    }
    if layout != "chunked":
        written = frozenset([0]) if layout == "compact" or draw(st.booleans()) else frozenset()
        return Described(shape=shape, layout=layout, written=written, **common)
    return draw(_chunked(shape, common))


@st.composite
def _chunked(draw: st.DrawFn, shape: tuple[int, ...], common: dict[str, Any]) -> Described:
    chunks = tuple(draw(st.integers(1, max(1, extent))) for extent in shape)
    max_shape = None
    if draw(st.booleans()):
        max_shape = tuple(draw(st.sampled_from([None, max(1, extent), 2 * extent + 2])) for extent in shape)
        chunks = tuple(min(chunk, limit or chunk) for chunk, limit in zip(chunks, max_shape, strict=True))
    count = int(np.prod([-(-extent // chunk) for extent, chunk in zip(shape, chunks, strict=True)]))
    places = st.integers(0, max(0, count - 1))
    is_text = common["type_name"] == TEXT_OF_ANY_LENGTH
    filters = draw(st.sampled_from([(), (), *((one,) for one in FIRST if not is_text)])) + tuple(
        draw(st.lists(st.sampled_from(BEHIND), max_size=3, unique=True))
    )
    if "nbit" in filters:
        # libhdf5 treats the checksum after n-bit as part of the values, and reads back wrong values.
        filters = tuple(one for one in filters if one != "fletcher32")
    edges_unfiltered = draw(st.integers(0, 4)) == 0
    new_shape = None
    if max_shape is not None and draw(st.booleans()):
        tops = [2 * extent + 1 if limit is None else limit for extent, limit in zip(shape, max_shape, strict=True)]
        new_shape = tuple(draw(st.integers(0, top)) for top in tops)
    return Described(
        shape=shape,
        layout="chunked",
        chunks=chunks,
        max_shape=max_shape,
        written=draw(st.just(frozenset(range(count))) | st.frozensets(places, max_size=6)),
        filters=filters,
        masks=draw(st.dictionaries(places, st.integers(1, 7), max_size=3)) if filters and not edges_unfiltered else {},
        edges_unfiltered=edges_unfiltered,
        new_shape=new_shape,
        **common,
    )


# --- writing


def write_file(path: Path, libver: Any, datasets: list[Described], **options: Any) -> None:
    """Write the datasets that the library accepts, by their numbers."""
    every = types()
    with h5py.File(path, "w", libver=libver, **options) as file:
        for number, one in enumerate(datasets):
            _write(file, str(number), one, every[one.type_name])


def _write(file: h5py.File, name: str, one: Described, kind: Any) -> None:
    space = h5s.create_simple(one.shape, _limits(one)) if one.shape else h5s.create(h5s.SCALAR)
    chance = random.Random(one.seed)
    try:
        created = h5d.create(file.id, name.encode(), kind, space, _properties(one, kind, chance))
    except (OSError, RuntimeError, ValueError):
        return  # a filter that does not support the type, or too many bytes for a compact layout
    try:
        _fill_in(h5py.Dataset(created), one, kind, chance)
    except (OSError, RuntimeError):
        del file[name]  # filters in an order that the library cannot read back, which it must do to write a part


def _fill_in(dataset: h5py.Dataset, one: Described, kind: Any, chance: random.Random) -> None:
    if one.layout == "chunked":
        _write_chunks(dataset, one, kind, chance)
    elif one.written:
        _put(dataset, one, kind, (0,) * len(one.shape), one.shape, chance)
    if one.new_shape is not None:
        dataset.resize(one.new_shape)
    dataset.id.flush()


def _limits(one: Described) -> tuple[int, ...] | None:
    if one.max_shape is None:
        return None
    return tuple(h5s.UNLIMITED if limit is None else limit for limit in one.max_shape)


def _properties(one: Described, kind: Any, chance: random.Random) -> Any:
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_fill_time(FILL_TIMES[one.fill_time])
    if one.early and one.layout != "compact" and one.type_name != TEXT_OF_ANY_LENGTH:
        plist.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    if one.fill != "default" and one.type_name != TEXT_OF_ANY_LENGTH:
        element = np.frombuffer(_element(one, kind, chance, is_fill=True), f"V{kind.get_size()}")
        libhdf5.call("H5Pset_fill_value", plist, kind, element.ctypes.data)
    if one.layout == "compact":
        plist.set_layout(h5d.COMPACT)
    if one.layout != "chunked":
        return plist
    plist.set_chunk(one.chunks)
    for name in one.filters:
        _SET[name](plist, one)
    if one.edges_unfiltered:
        libhdf5.call("H5Pset_chunk_opts", plist, DONT_FILTER_PARTIAL_CHUNKS)
    return plist


_SET: dict[str, Any] = {
    "shuffle": lambda plist, one: plist.set_shuffle(),
    "deflate": lambda plist, one: plist.set_deflate(1 + one.seed % 9),
    "fletcher32": lambda plist, one: plist.set_fletcher32(),
    "lzf": lambda plist, one: plist.set_filter(LZF, h5z.FLAG_OPTIONAL),
    "szip": lambda plist, one: plist.set_szip(h5z.SZIP_NN_OPTION_MASK if one.seed % 2 else h5z.SZIP_EC_OPTION_MASK, 4),
    "scaleoffset": lambda plist, one: plist.set_scaleoffset(h5z.SO_INT, 0),
    "nbit": lambda plist, one: plist.set_filter(NBIT, h5z.FLAG_OPTIONAL),
}


def _write_chunks(dataset: h5py.Dataset, one: Described, kind: Any, chance: random.Random) -> None:
    axes = [range(0, extent, chunk) for extent, chunk in zip(one.shape, one.chunks, strict=True)]
    for number, origin in enumerate(itertools.product(*axes)):
        if number not in one.written:
            continue
        shape = tuple(min(chunk, n - at) for chunk, n, at in zip(one.chunks, one.shape, origin, strict=True))
        _put(dataset, one, kind, origin, shape, chance)
        _skip_filters(dataset, one, kind, origin, one.masks.get(number, 0), chance)


def _skip_filters(
    dataset: h5py.Dataset, one: Described, kind: Any, origin: tuple[int, ...], mask: int, chance: random.Random
) -> None:
    """Write a chunk again with some filters skipped, if the other filters are easy to apply."""
    mask &= (1 << len(one.filters)) - 1
    applied = [name for bit, name in enumerate(one.filters) if not mask >> bit & 1]
    if not mask or one.type_name == TEXT_OF_ANY_LENGTH or not set(applied) <= _APPLY.keys():
        return
    content = b"".join(_element(one, kind, chance) for _ in range(int(np.prod(one.chunks))))
    for name in applied:
        content = _APPLY[name](content, kind.get_size())
    dataset.id.write_direct_chunk(origin, content, filter_mask=mask)


def _shuffle(content: bytes, width: int) -> bytes:
    whole = len(content) - len(content) % width
    return np.frombuffer(content[:whole], np.uint8).reshape(-1, width).T.tobytes() + content[whole:]


_APPLY: dict[str, Any] = {
    "shuffle": _shuffle,
    "deflate": lambda content, width: zlib.compress(content),
    "fletcher32": lambda content, width: Fletcher32().encode(content),
}


def _put(
    dataset: h5py.Dataset,
    one: Described,
    kind: Any,
    origin: tuple[int, ...],
    shape: tuple[int, ...],
    chance: random.Random,
) -> None:
    """Write some elements without conversion."""
    count = int(np.prod(shape, dtype=int))
    if count == 0:
        return
    place = tuple(slice(at, at + n) for at, n in zip(origin, shape, strict=True))
    if one.type_name == TEXT_OF_ANY_LENGTH:
        texts = np.array([chance.choice(["", "a", "κόσμε", "x" * 40]) for _ in range(count)], object)
        dataset[place if shape else ()] = texts.reshape(shape) if shape else texts[0]
        return
    content = np.frombuffer(b"".join(_element(one, kind, chance) for _ in range(count)), np.uint8).copy()
    space = dataset.id.get_space()
    if shape:
        space.select_hyperslab(origin, shape)
        memory = h5s.create_simple(shape)
    else:
        memory = h5s.ALL
    dataset.id.write(
        memory, space if shape else h5s.ALL, content.view(f"V{kind.get_size()}").reshape(shape), mtype=kind
    )


def _element(one: Described, kind: Any, chance: random.Random, is_fill: bool = False) -> bytes:
    """Return one element: random bytes, or a small number, which packs well."""
    nbytes = kind.get_size()
    if one.type_name == "?":
        return bytes([chance.randrange(2)])
    if one.type_name.startswith("enum"):
        return (
            struct.pack("<h", chance.choice([1, -2])) if nbytes == 2 else struct.pack(">I", chance.choice([1, 70000]))
        )
    if is_fill and one.fill in ("nan", "infinite") and one.type_name[1:2] == "f":
        return _special(one, chance)
    if one.type_name in INTEGERS and (is_fill or one.seed % 2):
        return np.array(chance.randrange(100), one.type_name).tobytes()
    return chance.randbytes(nbytes)


def _special(one: Described, chance: random.Random) -> bytes:
    dtype = np.dtype(one.type_name)
    if one.fill == "infinite":
        return np.array(chance.choice([np.inf, -np.inf]), dtype).tobytes()
    exponent = {2: 0x7C00, 4: 0x7F800000, 8: 0x7FF0000000000000}[dtype.itemsize]
    quiet = {2: 0x0200, 4: 0x400000, 8: 0x8000000000000}[dtype.itemsize]
    bits = exponent | quiet | chance.randrange(512)
    return bits.to_bytes(dtype.itemsize, "little" if dtype.byteorder in "<=" else "big")

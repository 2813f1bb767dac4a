"""Rules of Zarr version 3 about codecs: which, in what order, with what settings."""

from __future__ import annotations

from collections.abc import Iterator

from h5zarr.hierarchy import Json
from h5zarr.validating.codecs import KINDS, Kind, codecs_of
from h5zarr.validating.data_types import find_type
from h5zarr.validating.members import is_integer, shape_of
from h5zarr.validating.raw import RawNode
from h5zarr.validating.rules import Found, Level, Result, Rule, each_array

_SERIALIZERS = {"string": ("vlen-utf8",), "bytes": ("vlen-bytes",), "variable_length_bytes": ("vlen-bytes",)}
_ORDER = (Kind.ARRAY_ARRAY, Kind.ARRAY_BYTES, Kind.BYTES_BYTES)
_WRITE_AGAIN = "Write the codecs that the chunks were written with."


def _check_form(node: RawNode) -> Iterator[Result]:
    if "codecs" in node.metadata and not codecs_of(node):
        yield Found(node.path, "codecs is no list of one or more names or objects with names", _WRITE_AGAIN)


def _check_known(node: RawNode) -> Iterator[Result]:
    for name, _ in codecs_of(node) or ():
        if name not in KINDS:
            yield Found(node.path, f'no codec is known by the name "{name[:60]}"', _WRITE_AGAIN)


def _check_order(node: RawNode) -> Iterator[Result]:
    kinds = [KINDS.get(name) for name, _ in codecs_of(node) or ()]
    known = [kind for kind in kinds if kind is not None]
    if not known or len(known) < len(kinds):
        return
    if (count := known.count(Kind.ARRAY_BYTES)) != 1:
        yield Found(node.path, f"there are {count} codecs from an array to bytes, and must be one", _WRITE_AGAIN)
    if known != sorted(known, key=_ORDER.index):
        names = ", ".join(name for name, _ in codecs_of(node) or ())
        what = f"the codecs {names} are in an order in which one is given what it does not take"
        yield Found(node.path, what, _WRITE_AGAIN)


def _check_serializer(node: RawNode) -> Iterator[Result]:
    codecs, kind = codecs_of(node) or (), find_type(node.metadata.get("data_type"))
    if isinstance(kind, str):
        return
    for name, _ in codecs:
        if name == "bytes" and kind.name in _SERIALIZERS:
            what = f"the codec bytes takes elements of one size, and those of {kind.name} have none"
            yield Found(node.path, what, f"Write the codec {_SERIALIZERS[kind.name][0]}.")
        elif name.startswith("vlen-") and name not in _SERIALIZERS.get(kind.name, ()):
            yield Found(node.path, f"the codec {name} does not take elements of {kind.name}", "Write the codec bytes.")


def _check_endian(node: RawNode) -> Iterator[Result]:
    kind = find_type(node.metadata.get("data_type"))
    codecs = codecs_of(node) or ()
    if isinstance(kind, str) or any(KINDS.get(name) is Kind.ARRAY_ARRAY and name != "transpose" for name, _ in codecs):
        return  # such a codec may give elements of another type
    for name, configuration in codecs:
        if name != "bytes":
            continue
        told = configuration.get("endian")
        if told is None and kind.is_ordered:
            what = f"the codec bytes does not say in which order the bytes of {kind.name} are"
            yield Found(node.path, what, 'Write "endian": "little" or "big" in its configuration.')
        elif told is not None and told not in ("little", "big"):
            yield Found(node.path, "the order of bytes is neither little nor big", "Write one of the two.")


def _check_settings(node: RawNode) -> Iterator[Result]:
    for name, configuration in codecs_of(node) or ():
        if wrong := _wrong_settings(name, configuration, node):
            yield Found(node.path, f"codec {name}: {wrong}", _WRITE_AGAIN)


def _wrong_settings(name: str, told: dict[str, Json], node: RawNode) -> str:
    """Return what is wrong with the settings of a codec of the specification; "" if nothing, or it is another's."""
    match name:
        case "gzip":
            return _outside(told, "level", 0, 9)
        case "zstd":
            return _outside(told, "level", -131072, 22)
        case "blosc":
            return _wrong_blosc(told)
        case "transpose":
            order, shape = told.get("order"), shape_of(node)
            rank = len(shape) if shape is not None else len(order) if isinstance(order, list) else 0
            numbers = [one for one in order if is_integer(one)] if isinstance(order, list) else []
            is_right = isinstance(order, list) and len(order) == rank and sorted(numbers) == list(range(rank))
            return "" if is_right else "order does not name each axis once"
    return ""


def _wrong_blosc(told: dict[str, Json]) -> str:
    if told.get("cname") not in ("lz4", "lz4hc", "blosclz", "zstd", "snappy", "zlib"):
        return "cname is no compressor of Blosc"
    if told.get("shuffle") not in ("noshuffle", "shuffle", "bitshuffle"):
        return "shuffle is none of noshuffle, shuffle and bitshuffle"
    if told["shuffle"] != "noshuffle" and (wrong := _outside(told, "typesize", 1, 255)):
        return wrong
    return _outside(told, "clevel", 0, 9) or _outside(told, "blocksize", 0, 2**31 - 1)


def _outside(told: dict[str, Json], name: str, least: int, most: int) -> str:
    value = told.get(name)
    return "" if is_integer(value) and least <= value <= most else f"{name} is no integer from {least} to {most}"


RULES = (
    Rule(
        id="zarr3/codecs",
        level=Level.ERROR,
        section="Array metadata: codecs",
        asks="there is a list of one or more codecs",
        check=each_array(_check_form),
    ),
    Rule(
        id="zarr3/known-codecs",
        level=Level.ERROR,
        section="Core codecs; Extension codecs; zarr-extensions: codecs",
        asks="each codec is one of Zarr, zarr-extensions, numcodecs or h5zarr",
        check=each_array(_check_known),
    ),
    Rule(
        id="zarr3/codec-order",
        level=Level.ERROR,
        section="Codecs",
        asks="array to array, then exactly one array to bytes, then bytes to bytes",
        check=each_array(_check_order),
    ),
    Rule(
        id="zarr3/serializer",
        level=Level.ERROR,
        section="Determination of encoded representations",
        asks="the codec from an array to bytes takes the data type",
        check=each_array(_check_serializer),
    ),
    Rule(
        id="zarr3/endian",
        level=Level.ERROR,
        section="Bytes codec: Configuration parameters",
        asks="`bytes` states the order of bytes where elements have several",
        check=each_array(_check_endian),
    ),
    Rule(
        id="zarr3/codec-settings",
        level=Level.ERROR,
        section="Blosc, Gzip, Transpose codec; zarr-extensions: zstd",
        asks="codecs of the specification have the settings that it wants",
        check=each_array(_check_settings),
    ),
)

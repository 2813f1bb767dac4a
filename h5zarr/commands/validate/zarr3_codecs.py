"""Rules of Zarr version 3 about codecs: which, in what order, and with what configuration."""

from __future__ import annotations

from collections.abc import Iterator

from h5zarr.commands.validate.members import codecs_of, shape_of
from h5zarr.commands.validate.raw import RawNode
from h5zarr.commands.validate.rules import Found, Level, Result, Rule, each_array
from h5zarr.filters.blosc import COMPRESSORS, SHUFFLES
from h5zarr.zarr_model.codecs import CodecKind, codec_kind, unknown_filter_of
from h5zarr.zarr_model.data_types import find_type
from h5zarr.zarr_model.hierarchy import Json
from h5zarr.zarr_model.json_forms import is_integer

_SERIALIZERS = {"string": ("vlen-utf8",), "bytes": ("vlen-bytes",), "variable_length_bytes": ("vlen-bytes",)}
_ORDER = (CodecKind.ARRAY_ARRAY, CodecKind.ARRAY_BYTES, CodecKind.BYTES_BYTES)
_WRITE_AGAIN = "Write the codecs that encoded the chunks."


def _check_form(node: RawNode) -> Iterator[Result]:
    if "codecs" in node.metadata and not codecs_of(node):
        yield Found(node.path, "codecs is not a list of one or more names or objects with names", _WRITE_AGAIN)


def _check_known(node: RawNode) -> Iterator[Result]:
    for name, configuration in codecs_of(node) or ():
        if codec_kind(name) is None:
            yield Found(node.path, f'"{name[:60]}" is not a known codec', _WRITE_AGAIN)
        elif filter_name := unknown_filter_of(name, configuration):
            what = f'"{filter_name[:60]}" is not a known HDF5 filter'
            yield Found(node.path, what, "Install the package that adds the filter to h5zarr.")


def _check_order(node: RawNode) -> Iterator[Result]:
    kinds = [codec_kind(name) for name, _ in codecs_of(node) or ()]
    known = [kind for kind in kinds if kind is not None]
    if not known or len(known) < len(kinds):
        return
    if (count := known.count(CodecKind.ARRAY_BYTES)) != 1:
        yield Found(node.path, f"there are {count} array-to-bytes codecs, but there must be one", _WRITE_AGAIN)
    if known != sorted(known, key=_ORDER.index):
        names = ", ".join(name for name, _ in codecs_of(node) or ())
        what = f"invalid codec order: {names}"
        yield Found(node.path, what, _WRITE_AGAIN)


def _check_serializer(node: RawNode) -> Iterator[Result]:
    codecs, kind = codecs_of(node) or (), find_type(node.metadata.get("data_type"))
    if isinstance(kind, str):
        return
    for name, _ in codecs:
        if name == "bytes" and kind.name in _SERIALIZERS:
            what = f"the codec bytes needs elements of fixed size, which {kind.name} does not have"
            yield Found(node.path, what, f"Write the codec {_SERIALIZERS[kind.name][0]}.")
        elif name.startswith("vlen-") and name not in _SERIALIZERS.get(kind.name, ()):
            yield Found(
                node.path, f"the codec {name} does not accept elements of {kind.name}", "Write the codec bytes."
            )


def _check_endian(node: RawNode) -> Iterator[Result]:
    kind = find_type(node.metadata.get("data_type"))
    codecs = codecs_of(node) or ()
    changing = [name for name, _ in codecs if codec_kind(name) is CodecKind.ARRAY_ARRAY and name != "transpose"]
    if isinstance(kind, str) or changing:
        return  # such a codec may return elements of another type
    for name, configuration in codecs:
        if name != "bytes":
            continue
        endian = configuration.get("endian")
        if endian is None and kind.is_ordered:
            what = f"the codec bytes does not state the byte order of {kind.name}"
            yield Found(node.path, what, 'Write "endian": "little" or "big" in its configuration.')
        elif endian is not None and endian not in ("little", "big"):
            yield Found(node.path, "the byte order is neither little nor big", "Write one of the two.")


def _check_settings(node: RawNode) -> Iterator[Result]:
    for name, configuration in codecs_of(node) or ():
        if wrong := _wrong_settings(name, configuration, node):
            yield Found(node.path, f"codec {name}: {wrong}", _WRITE_AGAIN)


def _wrong_settings(name: str, configuration: dict[str, Json], node: RawNode) -> str:
    """Return what is wrong with the configuration of a core codec; "" if nothing, or if it is another codec."""
    match name:
        case "gzip":
            return _outside(configuration, "level", 0, 9)
        case "zstd":
            return _outside(configuration, "level", -131072, 22)
        case "blosc":
            return _wrong_blosc(configuration)
        case "transpose":
            order, shape = configuration.get("order"), shape_of(node)
            rank = len(shape) if shape is not None else len(order) if isinstance(order, list) else 0
            numbers = [one for one in order if is_integer(one)] if isinstance(order, list) else []
            is_right = isinstance(order, list) and len(order) == rank and sorted(numbers) == list(range(rank))
            return "" if is_right else "order does not name each axis once"
    return ""


def _wrong_blosc(configuration: dict[str, Json]) -> str:
    if configuration.get("cname") not in COMPRESSORS:
        return "cname is not a Blosc compressor"
    if configuration.get("shuffle") not in SHUFFLES:
        return "shuffle is not one of noshuffle, shuffle and bitshuffle"
    if configuration["shuffle"] != "noshuffle" and (wrong := _outside(configuration, "typesize", 1, 255)):
        return wrong
    return _outside(configuration, "clevel", 0, 9) or _outside(configuration, "blocksize", 0, 2**31 - 1)


def _outside(configuration: dict[str, Json], name: str, least: int, most: int) -> str:
    value = configuration.get(name)
    return "" if is_integer(value) and least <= value <= most else f"{name} is not an integer from {least} to {most}"


RULES = (
    Rule(
        id="zarr3/codecs",
        level=Level.ERROR,
        section="Array metadata: codecs",
        asks="`codecs` is a list of at least one codec",
        check=each_array(_check_form),
    ),
    Rule(
        id="zarr3/known-codecs",
        level=Level.ERROR,
        section="Core codecs; Extension codecs; zarr-extensions: codecs",
        asks="each codec is defined by Zarr, zarr-extensions, numcodecs or h5zarr",
        check=each_array(_check_known),
    ),
    Rule(
        id="zarr3/codec-order",
        level=Level.ERROR,
        section="Codecs",
        asks="array-to-array codecs, then exactly one array-to-bytes codec, then bytes-to-bytes codecs",
        check=each_array(_check_order),
    ),
    Rule(
        id="zarr3/serializer",
        level=Level.ERROR,
        section="Determination of encoded representations",
        asks="the array-to-bytes codec supports the data type",
        check=each_array(_check_serializer),
    ),
    Rule(
        id="zarr3/endian",
        level=Level.ERROR,
        section="Bytes codec: Configuration parameters",
        asks="`bytes` states the byte order if elements have several bytes",
        check=each_array(_check_endian),
    ),
    Rule(
        id="zarr3/codec-settings",
        level=Level.ERROR,
        section="Blosc, Gzip, Transpose codec; zarr-extensions: zstd",
        asks="codecs of the specification have valid configurations",
        check=each_array(_check_settings),
    ),
)

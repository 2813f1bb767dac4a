"""Rules of Zarr version 2: .zarray, .zgroup and .zattrs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from h5zarr.commands.validate.members import shape_of
from h5zarr.commands.validate.raw import RawNode, RawReferences
from h5zarr.commands.validate.rules import Found, Level, Result, Rule, each_array, each_node
from h5zarr.zarr_model.codecs import is_known_v2, unknown_filter_of
from h5zarr.zarr_model.grid import decode_lengths
from h5zarr.zarr_model.hierarchy import Json
from h5zarr.zarr_model.v2_types import find_type_v2, wrong_fill_v2

_REQUIRED = {"zarr_format", "shape", "chunks", "dtype", "compressor", "fill_value", "order", "filters"}
_METADATA = "Arrays: Metadata"
_WRITE_AGAIN = "Rewrite the metadata with a program that follows the specification."


def _check_format(node: RawNode) -> Iterator[Result]:
    version = node.metadata.get("zarr_format")
    if node.metadata and (type(version) is not int or version != 2):
        yield Found(node.path, "zarr_format is not 2", 'Write "zarr_format": 2.')


def _check_members(node: RawNode) -> Iterator[Result]:
    if missing := sorted(_REQUIRED - node.metadata.keys() - {"zarr_format"}):
        yield Found(node.path, f".zarray lacks {', '.join(missing)}", _WRITE_AGAIN)


def _check_others(node: RawNode) -> Iterator[Result]:
    if others := sorted(node.metadata.keys() - _REQUIRED - {"dimension_separator"}):
        yield Found(node.path, f".zarray has unknown members: {', '.join(others)[:80]}", "Remove them.")


def _check_group(node: RawNode) -> Iterator[Result]:
    if not node.is_array and (others := sorted(node.metadata.keys() - {"zarr_format"})):
        yield Found(node.path, f".zgroup has unknown members: {', '.join(others)[:80]}", "Remove them.")


def _check_shapes(node: RawNode) -> Iterator[Result]:
    shape = shape_of(node)
    if "shape" in node.metadata and shape is None:
        yield Found(node.path, "the shape is not a list of lengths", "Write the length of each dimension, an integer.")
    if "chunks" not in node.metadata:
        return
    chunks = decode_lengths(node.metadata["chunks"])
    if chunks is None or 0 in chunks:
        yield Found(node.path, "chunks is not a list of lengths of at least 1", "Write the length of chunks.")
    elif shape is not None and len(shape) != len(chunks):
        yield Found(
            node.path,
            f"the array has {len(shape)} dimensions, but its chunks have {len(chunks)}",
            "Write the length of chunks.",
        )


def _check_dtype(node: RawNode) -> Iterator[Result]:
    if "dtype" not in node.metadata:
        return
    found = find_type_v2(node.metadata["dtype"])
    if isinstance(found, str):
        yield Found(node.path, found, "Write a dtype that readers know.")
    elif found is None and not node.metadata.get("filters"):
        what = "the elements are objects, but no filter says how they are stored"
        yield Found(node.path, what, "Name the filter, such as vlen-utf8.")


def _check_fill(node: RawNode) -> Iterator[Result]:
    dtype = node.metadata.get("dtype")
    if isinstance(find_type_v2(dtype), str):
        return
    if wrong := wrong_fill_v2(node.metadata.get("fill_value"), dtype):
        yield Found(
            node.path, f"the fill_value is not valid for the dtype: {wrong}", "Write a value of the dtype, or null."
        )


def _check_order(node: RawNode) -> Iterator[Result]:
    if node.metadata.get("order", "C") not in ("C", "F"):
        yield Found(node.path, "the order of elements is neither C nor F", "Write one of the two.")


def _check_separator(node: RawNode) -> Iterator[Result]:
    if node.metadata.get("dimension_separator", ".") not in (".", "/"):
        yield Found(node.path, "dimension_separator is neither a dot nor a slash", "Write one of the two.")


def _check_codecs(node: RawNode) -> Iterator[Result]:
    compressor, filters = node.metadata.get("compressor"), node.metadata.get("filters")
    if compressor is not None and not _has_id(compressor):
        yield Found(node.path, "the compressor is neither null nor an object with an id", _WRITE_AGAIN)
    if not isinstance(filters, list | None) or not all(map(_has_id, filters or ())):
        yield Found(node.path, "filters is neither null nor a list of objects with ids", _WRITE_AGAIN)


def _has_id(codec: Json) -> bool:
    return isinstance(codec, dict) and isinstance(codec.get("id"), str)


def _check_known(node: RawNode) -> Iterator[Result]:
    filters = node.metadata.get("filters")
    for codec in [*(filters if isinstance(filters, list) else ()), node.metadata.get("compressor")]:
        if _has_id(codec) and not is_known_v2(codec["id"]):
            what = f'"{codec["id"][:60]}" is not a codec of numcodecs or h5zarr'
            yield Found(node.path, what, "Readers need the package that provides it.")
        elif _has_id(codec) and (filter_name := unknown_filter_of(codec["id"], codec)):
            what = f'"{filter_name[:60]}" is not a known HDF5 filter'
            yield Found(node.path, what, "Install the package that adds the filter to h5zarr.")


def _check_paths(node: RawNode) -> Iterator[Result]:
    names = node.path.split("/")[1:] if node.path != "/" else []
    if any(name in ("", ".", "..") or "\\" in name for name in names):
        yield Found(node.path, "a name in the path is empty, consists of dots, or has a backslash", "Rename it.")


def _check_ascii(node: RawNode) -> Iterator[Result]:
    if not node.path.isascii():
        what = "the path has non-ASCII characters, but keys are ASCII"
        yield Found(node.path, what, "Rename it, if a reader fails on it.")


def _check_parents(raw: RawReferences) -> Iterator[Result]:
    above = {"/"} | {node.group for path, node in raw.nodes.items() if path != "/"}
    for path in sorted(above):
        parent = raw.nodes.get(path)
        if parent is None or not parent.metadata:
            yield Found(path, "it is a group, but has no .zgroup", "Write a .zgroup for it.")
        elif parent.is_array:
            yield Found(path, "it is an array, but there are nodes below it", "Move them to a group.")


def _check_consolidated(raw: RawReferences) -> Iterator[Result]:
    consolidated = raw.consolidated
    if consolidated is None:
        return
    inside = consolidated.get("metadata") if isinstance(consolidated, dict) else None
    if not isinstance(inside, dict) or consolidated.get("zarr_consolidated_format") != 1:
        yield Found(".zmetadata", 'it needs "zarr_consolidated_format": 1 and metadata', _WRITE_AGAIN)
        return
    remedy = "Consolidate the metadata again."
    own: dict[str, Json] = {}
    for node in raw.nodes.values():
        prefix = f"{node.path}/".lstrip("/")
        own |= {f"{prefix}.zattrs": node.attributes} if node.attributes is not None else {}
        own |= {f"{prefix}{'.zarray' if node.is_array else '.zgroup'}": node.metadata} if node.metadata else {}
    for key in raw.only_consolidated:
        yield Found(key, "it is in .zmetadata, but has no metadata of its own", remedy)
    for key, value in own.items():
        if key not in inside:
            yield Found(key, "it is not in .zmetadata, so readers will miss it", remedy)
        elif inside[key] != value and repr(inside[key]) != repr(value):
            yield Found(key, ".zmetadata differs from its own metadata", remedy)


def _rule(
    name: str,
    section: str,
    asks: str,
    check: Callable[[RawNode], Iterator[Result]],
    level: Level = Level.ERROR,
    *,
    arrays: bool = True,
) -> Rule:
    check_all = each_array(check) if arrays else each_node(check)
    return Rule(id=f"zarr2/{name}", level=level, section=section, asks=asks, check=check_all, formats=(2,))


_WARNING = Level.WARNING
RULES = (
    _rule("zarr-format", f"{_METADATA}; Groups", "`zarr_format` is 2", _check_format, arrays=False),
    _rule("members", _METADATA, "an array has all mandatory members", _check_members),
    _rule("other-members", _METADATA, "an array has no other members", _check_others, _WARNING),
    _rule("group-members", "Hierarchies: Groups", "a group has no other members", _check_group, arrays=False),
    _rule(
        "shape",
        _METADATA,
        "shape and chunks are lists of lengths of the same rank, and chunks are not empty",
        _check_shapes,
    ),
    _rule("dtype", "Arrays: Data type encoding", "the dtype is a numpy dtype with its byte order", _check_dtype),
    _rule("fill-value", "Arrays: Fill value encoding", "the `fill_value` is valid for the dtype, or null", _check_fill),
    _rule("order", _METADATA, "the order is `C` or `F`", _check_order),
    _rule("dimension-separator", _METADATA, "the separator, if given, is `.` or `/`", _check_separator),
    _rule("codecs", _METADATA, "filters and compressor have ids, or are null", _check_codecs),
    _rule("known-codecs", "Arrays: Filters", "numcodecs or h5zarr defines the codecs", _check_known, _WARNING),
    _rule("paths", "Hierarchies: Logical storage paths", "paths are normalized", _check_paths, arrays=False),
    _rule("ascii-keys", "Storage", "keys are ASCII", _check_ascii, _WARNING, arrays=False),
    Rule(
        id="zarr2/parents",
        level=Level.ERROR,
        section="Hierarchies: Groups",
        asks="every parent of a node is a group with a `.zgroup`",
        check=_check_parents,
        formats=(2,),
    ),
    Rule(
        id="zarr2/consolidated",
        level=Level.ERROR,
        section="Xarray-Zarr convention: Description (consolidated metadata)",
        asks="`.zmetadata` equals the metadata of the nodes, and has all nodes",
        check=_check_consolidated,
        formats=(2,),
        containers=("json",),
    ),
)

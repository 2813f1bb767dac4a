"""Rules about chunks, of both Zarr versions: their keys and their entries."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator

from h5zarr.commands.validate.members import MOST, codecs_of, count_of, grid_of, is_v3, layout_of
from h5zarr.commands.validate.raw import RawNode, RawReferences
from h5zarr.commands.validate.rules import Found, Level, Result, Rule, each_array
from h5zarr.display import counted
from h5zarr.zarr_model.chunk_keys import decode_all_keys, match_keys
from h5zarr.zarr_model.data_types import find_type
from h5zarr.zarr_model.hierarchy import Json
from h5zarr.zarr_model.json_forms import is_integer
from h5zarr.zarr_model.v2_types import find_type_v2

_SHOWN = 5  # of each kind and array: a million lines help nobody
_BASE64 = "base64:"
_REMEDY = "Translate the file again."


def _few(path: str, keys: list[str], message: str, remedy: str) -> Iterator[Result]:
    """Yield the first of many similar findings, and the number of others."""
    for key in keys[:_SHOWN]:
        yield Found(key, message, remedy)
    if len(keys) > _SHOWN:
        yield Found(path, f"{counted(len(keys) - _SHOWN, 'other key')} below it: {message}", remedy)


def _check_keys(node: RawNode) -> Iterator[Result]:
    layout = layout_of(node)
    if layout is None or decode_all_keys(node.below, layout) is not None:
        return
    keys = node.below.keys
    wrong = [key for key, index in zip(keys, match_keys(layout, keys), strict=True) if index is None]
    coordinates = f"{layout.rank} coordinates with {layout.separator} between" if layout.rank else "nothing"
    what = f"not a chunk key, which is {layout.prefix} and {coordinates}: no reader requests it"
    yield from _few(node.path, wrong, what, _REMEDY)


def _check_inside(node: RawNode) -> Iterator[Result]:
    layout, grid = layout_of(node), grid_of(node)
    if layout is None or grid is None:
        return
    index = decode_all_keys(node.below, layout)
    if index is not None and grid.contains(index).all():
        return
    keys = node.below.keys
    wrong = [
        key
        for key, place in zip(keys, match_keys(layout, keys), strict=True)
        if place is not None and any(number >= count for number, count in zip(place, grid.grid_shape, strict=True))
    ]
    what = f"the chunk is outside the grid, which is {' × '.join(map(str, grid.grid_shape))}"
    yield from _few(node.path, wrong, what, _REMEDY)


def _check_entries(raw: RawReferences) -> Iterator[Result]:
    what = "the entry is neither text, nor [url], nor [url, offset, length] with numbers that are valid in a file"
    for path, keys, values in _all_entries(raw):
        yield from _few(
            path, [key for key, value in zip(keys, values, strict=True) if not _is_entry(value)], what, _REMEDY
        )


def _all_entries(raw: RawReferences) -> Iterator[tuple[str, list[str], list[Json]]]:
    for node in raw.arrays():
        yield node.path, node.below.keys, node.below.values
    yield "/", list(raw.stray), [raw.entries[key] for key in raw.stray]


def _is_entry(value: Json) -> bool:
    if isinstance(value, str):
        return True
    if not isinstance(value, list) or len(value) not in (1, 3) or not isinstance(value[0], str | None):
        return False
    if len(value) == 1:
        return True
    _, address, nbytes = value
    return is_integer(address) and is_integer(nbytes) and 0 <= address <= MOST and 0 <= nbytes <= MOST - address


def _check_base64(raw: RawReferences) -> Iterator[Result]:
    for path, keys, values in _all_entries(raw):
        wrong = [key for key, value in zip(keys, values, strict=True) if _is_damaged(value)]
        yield from _few(path, wrong, "the text after base64: is not valid base64", _REMEDY)


def _is_damaged(value: Json) -> bool:
    if not isinstance(value, str) or not value.startswith(_BASE64):
        return False
    try:
        b64decode(value[len(_BASE64) :], validate=True)
    except ValueError:
        return True
    return False


def _check_nbytes(node: RawNode) -> Iterator[Result]:
    count, element = count_of(node), _plain_nbytes(node)
    if count is None or element is None:
        return
    nbytes = count * element
    remedy = "Translate the file again, or name the codecs of its chunks."
    what = f"no codec encodes the chunk, and its size is not the {nbytes} bytes of its elements"
    wrong = [
        key
        for key, value in zip(node.below.keys, node.below.values, strict=True)
        if isinstance(value, list) and len(value) == 3 and value[2] != nbytes
    ]
    yield from _few(node.path, wrong, what, remedy)
    for index, content in node.inline.items():
        if len(content) != nbytes:
            place = ", ".join(map(str, index))
            yield Found(node.path, f"chunk ({place}): {what}, but {len(content)}", remedy)


def _plain_nbytes(node: RawNode) -> int | None:
    """Return the size of an element, if chunks are just consecutive elements."""
    if not is_v3(node):
        nbytes = find_type_v2(node.metadata.get("dtype"))
        is_plain = not node.metadata.get("filters") and not node.metadata.get("compressor")
        return nbytes if is_plain and isinstance(nbytes, int) else None
    codecs, kind = codecs_of(node), find_type(node.metadata.get("data_type"))
    if isinstance(kind, str) or not codecs or [name for name, _ in codecs] != ["bytes"]:
        return None
    return kind.nbytes


_BOTH = (2, 3)
_SPECIFICATION = "Version 0"
RULES = (
    Rule(
        id="zarr3/chunk-keys",
        level=Level.ERROR,
        section="Default chunk key encoding; V2 chunk key encoding",
        asks="all keys below an array are chunk keys",
        check=each_array(_check_keys),
        containers=("json",),
    ),
    Rule(
        id="zarr3/chunks-inside",
        level=Level.ERROR,
        section="Regular grids",
        asks="chunks are inside the grid",
        check=each_array(_check_inside),
        containers=("json",),
    ),
    Rule(
        id="zarr2/chunk-keys",
        level=Level.ERROR,
        section="Arrays: Chunks",
        asks="all keys below an array are chunk keys",
        check=each_array(_check_keys),
        formats=(2,),
        containers=("json",),
    ),
    Rule(
        id="zarr2/chunks-inside",
        level=Level.ERROR,
        section="Arrays: Chunks",
        asks="chunks are inside the grid",
        check=each_array(_check_inside),
        formats=(2,),
        containers=("json",),
    ),
    Rule(
        id="refs/entries",
        level=Level.ERROR,
        section=_SPECIFICATION,
        asks="an entry is text, `[url]` or `[url, offset, length]`",
        check=_check_entries,
        formats=_BOTH,
        containers=("json",),
    ),
    Rule(
        id="refs/base64",
        level=Level.ERROR,
        section=_SPECIFICATION,
        asks="text after `base64:` is valid base64",
        check=_check_base64,
        formats=_BOTH,
        containers=("json",),
    ),
    Rule(
        id="refs/chunk-nbytes",
        level=Level.ERROR,
        section="Bytes codec: Format and algorithm; Zarr version 2: Chunks",
        asks="a chunk without codecs has the size of its elements",
        check=each_array(_check_nbytes),
        formats=_BOTH,
    ),
)

"""Rules about the reference file itself: https://fsspec.github.io/kerchunk/spec.html, and fsspec's readers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from h5zarr.commands.validate.members import chunk_shape_of, grid_of, is_v3, shape_of
from h5zarr.commands.validate.raw import RawNode, RawReferences
from h5zarr.commands.validate.rules import Check, Found, Level, Result, Rule, each_array
from h5zarr.display import counted
from h5zarr.io.location import Location
from h5zarr.io.protocols import PROTOCOL, protocol_of
from h5zarr.zarr_model.grid import decode_lengths
from h5zarr.zarr_model.hierarchy import Json

_CODE = re.compile(r"\{[{%#]")
_PLACE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_SHOWN = 5
_AGAIN = "Translate the file again."
_EXPAND = "Expand the references: open the file with fsspec's reference file system and save its references."


def _check_version(raw: RawReferences) -> Iterator[Result]:
    if "version" in raw.document and raw.document["version"] != 1:
        yield Found("/", "the version of the reference format is not 1", 'Write "version": 1.')


def _check_generators(raw: RawReferences) -> Iterator[Result]:
    if raw.document.get("gen"):
        yield Found("/", "some references must be computed (gen): readers may ignore them, and show fill", _EXPAND)


def _check_templates(raw: RawReferences) -> Iterator[Result]:
    templates = raw.document.get("templates")
    if not templates:
        return
    if not isinstance(templates, dict) or not all(isinstance(text, str) for text in templates.values()):
        yield Found("/", "templates is not an object that maps names to texts", _EXPAND)
        return
    for name, text in templates.items():
        if _CODE.search(text):
            yield Found("/", f'template "{name[:60]}" is code, which readers would have to run', _EXPAND)
    wrong: dict[str, str] = {}
    for key, value in raw.entries.items():
        if isinstance(value, list) and value and isinstance(value[0], str) and "{" in value[0]:
            rest = _PLACE.sub("", value[0])
            unknown = [name for name in _PLACE.findall(value[0]) if name not in templates]
            if unknown or _CODE.search(rest):
                what = f'there is no template "{unknown[0][:60]}"' if unknown else "its URL is code"
                wrong.setdefault(what, key)
    for what, key in wrong.items():
        yield Found(key, what, _EXPAND)


def _check_readable(raw: RawReferences) -> Iterator[Result]:
    for key, what in raw.unreadable.items():
        yield Found(key, what, _AGAIN)


def _check_elsewhere(raw: RawReferences) -> Iterator[Result]:
    for key in raw.elsewhere:
        what = "the file only says where the metadata are: they were not checked"
        yield Found(key, what, "Put the metadata themselves into the references.")


def _check_repeated(raw: RawReferences) -> Iterator[Result]:
    for key, name in raw.repeated[:_SHOWN]:
        yield Found(key, f'the name "{name[:60]}" occurs twice, and readers may take either', _AGAIN)


def _check_numbers(raw: RawReferences) -> Iterator[Result]:
    if raw.odd_numbers:
        first, *others = raw.odd_numbers
        more = f", and in {counted(len(others), 'other place')}" if others else ""
        what = f"NaN or Infinity is written as a number{more}: Python reads it, but it is not valid JSON"
        yield Found(first, what, "Remove the attribute, if another program is to read it.")


def _check_stray(raw: RawReferences) -> Iterator[Result]:
    for key in raw.stray[:_SHOWN]:
        yield Found(key, "it is neither metadata nor below an array: no reader uses it", _AGAIN)
    if len(raw.stray) > _SHOWN:
        yield Found("/", f"{counted(len(raw.stray) - _SHOWN, 'other key')} that no reader uses", _AGAIN)


def _urls(raw: RawReferences) -> dict[str, str]:
    """Return the first key of each URL."""
    found: dict[str, str] = {}
    previous: Json = None
    for key, value in raw.entries.items():
        if isinstance(value, list) and value and value[0] != previous and isinstance(value[0], str):
            previous = value[0]
            found.setdefault(previous, key)
    return found


def _check_absolute(raw: RawReferences) -> Iterator[Result]:
    if raw.document.get("templates"):
        return
    for url, key in list(_urls(raw).items())[:1000]:
        if url and not PROTOCOL.match(url) and not url.startswith(("/", "\\")) and url[1:2] != ":":
            what = f'"{Location.parse(url)}" is relative, and means a different file in each working directory'
            yield Found(key, what, "Write absolute URLs: translate with target_url=URL.")


def _check_protocol(raw: RawReferences) -> Iterator[Result]:
    if raw.document.get("templates"):
        return
    protocols = sorted({protocol_of(url) for url in _urls(raw) if url})
    if len(protocols) > 1:
        what = f"the references need {len(protocols)} protocols ({', '.join(protocols)}), but readers open only one"
        yield Found("/", what, "Name the file systems when opening: fs={protocol: options} in the storage options.")


def _check_parts(node: RawNode) -> Iterator[Result]:
    for part in node.parts:
        if part.error:
            yield Found(part.name, part.error, _AGAIN)
        elif part.count < part.most:
            what = f"it has {part.count} rows, but there are {part.most} chunks for it"
            yield Found(part.name, what, _AGAIN)


def _check_stub(node: RawNode) -> Iterator[Result]:
    shape, chunks, grid = shape_of(node), chunk_shape_of(node), grid_of(node)
    if not is_v3(node) or shape is None or grid is None:
        return
    if chunks is None:  # fsspec numbers the chunks of a rectilinear grid if each is one element
        shape, chunks = grid.grid_shape, (1,) * len(shape)
    stub = node.stub if isinstance(node.stub, dict) else {}
    if decode_lengths(stub.get("shape")) != shape or decode_lengths(stub.get("chunks")) != chunks:
        what = "no .zarray gives fsspec the shape of the array and its chunks, as zarr.json does: it finds no chunk"
        yield Found(node.path, what, _AGAIN)


def _check_record_size(raw: RawReferences) -> Iterator[Result]:
    size = raw.document.get("record_size")
    if type(size) is not int or size < 1:
        yield Found(".zmetadata", "record_size is not a number of rows", _AGAIN)


_ONLY_JSON, _ONLY_PARQUET, _BOTH = ("json",), ("parquet",), ("json", "parquet")


def _rule(
    name: str, section: str, asks: str, check: Check, level: Level = Level.ERROR, containers: tuple[str, ...] = _BOTH
) -> Rule:
    return Rule(
        id=f"refs/{name}",
        level=level,
        section=section,
        asks=asks,
        check=check,
        formats=(2, 3),
        containers=containers,
    )


_WARNING = Level.WARNING
_ONE, _ZERO = "Version 1", "Version 0"
_PARQUET = "Parquet: fsspec's LazyReferenceMapper"
RULES = (
    _rule("version", _ONE, "the version, if stated, is 1", _check_version, containers=_ONLY_JSON),
    _rule(
        "generators",
        _ONE,
        "all references are written out, without generators",
        _check_generators,
        containers=_ONLY_JSON,
    ),
    _rule("templates", _ONE, "templates are plain text, and every template that is used is defined", _check_templates),
    _rule("metadata", _ZERO, "metadata is a JSON object, or the text of one", _check_readable),
    _rule("metadata-inside", _ZERO, "metadata is in the reference file itself", _check_elsewhere),
    _rule("repeated-names", "RFC 8259: 4", "names in an object are unique", _check_repeated, _WARNING),
    _rule("numbers", "RFC 8259: 6", "NaN and infinities are not written as numbers", _check_numbers, _WARNING),
    _rule("stray-keys", _ZERO, "every key belongs to metadata or to an array", _check_stray, _WARNING, _ONLY_JSON),
    _rule("absolute-urls", _ZERO, "URLs are absolute", _check_absolute, _WARNING, _ONLY_JSON),
    _rule("one-protocol", _ZERO, "all URLs have the same protocol", _check_protocol, _WARNING, _ONLY_JSON),
    _rule("record-size", _PARQUET, "`record_size` is a number of rows", _check_record_size, containers=_ONLY_PARQUET),
    _rule(
        "parquet-files",
        _PARQUET,
        "the files are readable, belong together, and have a row for each chunk",
        each_array(_check_parts),
        containers=_ONLY_PARQUET,
    ),
    _rule(
        "parquet-grid",
        _PARQUET,
        "each version 3 array has a `.zarray` with its shape",
        each_array(_check_stub),
        containers=_ONLY_PARQUET,
    ),
)

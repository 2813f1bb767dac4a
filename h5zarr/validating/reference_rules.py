"""Rules about the reference file itself: https://fsspec.github.io/kerchunk/spec.html, and fsspec's readers of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from h5zarr.hierarchy import Json
from h5zarr.inspect.quantities import counted
from h5zarr.io.grammar import PROTOCOL, protocol_of
from h5zarr.io.url import display_url
from h5zarr.validating.members import chunk_shape_of, is_v3, lengths, shape_of
from h5zarr.validating.raw import RawNode, RawReferences
from h5zarr.validating.rules import Check, Found, Level, Result, Rule, each_array

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
        yield Found("/", "some references must be computed (gen): readers may ignore that, and show fill", _EXPAND)


def _check_templates(raw: RawReferences) -> Iterator[Result]:
    templates = raw.document.get("templates")
    if not templates:
        return
    if not isinstance(templates, dict) or not all(isinstance(text, str) for text in templates.values()):
        yield Found("/", "the templates are no texts by name", _EXPAND)
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
        what = "the metadata are not in the file, only where they are: nothing of them was checked"
        yield Found(key, what, "Put the metadata themselves into the references.")


def _check_repeated(raw: RawReferences) -> Iterator[Result]:
    for key, name in raw.repeated[:_SHOWN]:
        yield Found(key, f'"{name[:60]}" stands there twice, and readers may take either', _AGAIN)


def _check_numbers(raw: RawReferences) -> Iterator[Result]:
    if raw.odd_numbers:
        first, *others = raw.odd_numbers
        more = f", and in {counted(len(others), 'other place')}" if others else ""
        what = f"NaN or Infinity stands there as a number{more}: Python reads it, and it is no JSON"
        yield Found(first, what, "Leave the attribute out, if another program is to read it.")


def _check_stray(raw: RawReferences) -> Iterator[Result]:
    for key in raw.stray[:_SHOWN]:
        yield Found(key, "it is neither metadata, nor below an array: nobody reads it", _AGAIN)
    if len(raw.stray) > _SHOWN:
        yield Found("/", f"{counted(len(raw.stray) - _SHOWN, 'other key')} that nobody reads", _AGAIN)


def _urls(raw: RawReferences) -> dict[str, str]:
    """Return the key that each URL stands under first."""
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
            what = f'"{display_url(url)}" is relative, and means another file wherever a reader works'
            yield Found(key, what, "Write absolute URLs: h5zarr translate --target-url.")


def _check_protocol(raw: RawReferences) -> Iterator[Result]:
    if raw.document.get("templates"):
        return
    protocols = sorted({protocol_of(url) for url in _urls(raw) if url})
    if len(protocols) > 1:
        what = f"the references need {len(protocols)} protocols ({', '.join(protocols)}), and readers open one"
        yield Found("/", what, "Name the file systems when opening: fs={protocol: options} in the storage options.")


def _check_parts(node: RawNode) -> Iterator[Result]:
    for part in node.parts:
        if part.error:
            yield Found(part.name, part.error, _AGAIN)
        elif part.count < part.most:
            what = f"it has {part.count} rows, and there are {part.most} chunks for it"
            yield Found(part.name, what, _AGAIN)


def _check_stub(node: RawNode) -> Iterator[Result]:
    shape, chunks = shape_of(node), chunk_shape_of(node)
    if not is_v3(node) or shape is None or chunks is None:
        return
    stub = node.stub if isinstance(node.stub, dict) else {}
    if lengths(stub.get("shape")) != shape or lengths(stub.get("chunks")) != chunks:
        what = "no .zarray tells fsspec the shape of the array and its chunks, as zarr.json has them: it finds no chunk"
        yield Found(node.path, what, _AGAIN)


def _check_record_size(raw: RawReferences) -> Iterator[Result]:
    size = raw.document.get("record_size")
    if type(size) is not int or size < 1:
        yield Found(".zmetadata", "record_size is no number of rows", _AGAIN)


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
    _rule("generators", _ONE, "no references are left to be computed", _check_generators, containers=_ONLY_JSON),
    _rule("templates", _ONE, "templates are plain text, and all that are used are there", _check_templates),
    _rule("metadata", _ZERO, "metadata are a JSON object, or the text of one", _check_readable),
    _rule("metadata-inside", _ZERO, "metadata are in the file itself", _check_elsewhere),
    _rule("repeated-names", "RFC 8259: 4", "no name stands twice in an object", _check_repeated, _WARNING),
    _rule("numbers", "RFC 8259: 6", "NaN and infinities do not stand as numbers", _check_numbers, _WARNING),
    _rule("stray-keys", _ZERO, "every key is of metadata or of an array", _check_stray, _WARNING, _ONLY_JSON),
    _rule("absolute-urls", _ZERO, "URLs are absolute", _check_absolute, _WARNING, _ONLY_JSON),
    _rule("one-protocol", _ZERO, "URLs are of one protocol", _check_protocol, _WARNING, _ONLY_JSON),
    _rule("record-size", _PARQUET, "`record_size` is a number of rows", _check_record_size, containers=_ONLY_PARQUET),
    _rule(
        "parquet-files",
        _PARQUET,
        "the files can be read, belong together, and have a row for each chunk",
        each_array(_check_parts),
        containers=_ONLY_PARQUET,
    ),
    _rule(
        "parquet-grid",
        _PARQUET,
        "a `.zarray` tells the shape of each array of version 3",
        each_array(_check_stub),
        containers=_ONLY_PARQUET,
    ),
)

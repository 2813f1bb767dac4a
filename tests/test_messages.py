"""Every message of the package is triggered: here, or in a test elsewhere that quotes it.

So a new message fails here until a test triggers it. See `message_places.py` for what counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import h5zarr
from h5zarr.cli import main
from h5zarr.containers.compression import decompress
from h5zarr.containers.icechunk.manifest_file import decode_manifest
from h5zarr.containers.json.json_reading import decode_references
from h5zarr.containers.output import or_output_error
from h5zarr.io.failure import ignores_ranges, or_source_error
from h5zarr.io.location import sibling_url
from h5zarr.io.source import open_source
from h5zarr.io.span import Span
from h5zarr.signatures import wrong_format
from h5zarr.store import _bounds
from tests.collections_of_files import SAMPLES
from tests.message_places import is_triggered, messages, rooms

OCEAN = SAMPLES / "ocean.nc"
ICECHUNK = "ICE🧊CHUNK".encode() + bytes(24)
GROUP = {"zarr_format": 3, "node_type": "group"}

TRIGGERS: dict[str, Callable[[Path], Any]] = {
    "expected KEY=VALUE": lambda tmp: main(["inspect", "a.nc", "--storage-options", "profile"]),
    "expected a directory": lambda tmp: main(["check", "a.nc", "--allow", ""]),
    "is not a share between 0 and 1": lambda tmp: main(["verify", "a.json", "--sample", "2"]),
    "refs.json: gzip cannot decompress it": lambda tmp: decompress(b"\x1f\x8b\x08\0\0\0\0\0\0\0\xff", "refs.json"),
    "refs.json: zstd cannot decompress it": lambda tmp: decompress(b"\x28\xb5\x2f\xfd" + b"\xff" * 20, "refs.json"),
    "m is not an Icechunk file": lambda tmp: decode_manifest(b"no", "m"),
    "m is not a manifest": lambda tmp: decode_manifest(ICECHUNK + bytes([1, 3, 0]), "m"),
    "m is of version 9 of Icechunk's format": lambda tmp: decode_manifest(ICECHUNK + bytes([9, 2, 0]), "m"),
    "Icechunk has no option nope here": lambda tmp: h5zarr.translate(
        OCEAN, f"icechunk+file://{tmp}/r", output_options={"nope": 1}
    ),
    "it has generators of references": lambda tmp: _decode({"version": 1, "gen": [{}], "refs": {}}),
    "the node is neither a group nor an array": lambda tmp: _decode({"zarr.json": {**GROUP, "node_type": "x"}}),
    "the URL has a template name in single braces": lambda tmp: _decode(
        {"version": 1, "templates": {"u": "x"}, "refs": {"a/0": ["{{u}}{u}", 0, 1]}}
    ),
    'treat "::" in a name as the separator of a URL chain': lambda tmp: h5zarr.translate(OCEAN, tmp / "a::b.json"),
    "fill_value is null, but some chunks are unwritten": lambda tmp: _convert_unfilled(tmp),
    "interprets braces in the name": lambda tmp: h5zarr.translate(OCEAN, tmp / "a{b}.parquet"),
    "has no metadata, or no record size": lambda tmp: _convert_directory(tmp, {}),
    "this is a directory of Zarr data, not references": lambda tmp: _convert_directory(
        tmp, {"metadata": {".zgroup": {"zarr_format": 2}}, "zarr_consolidated_format": 1}
    ),
    "'x' is not a byte request": lambda tmp: _bounds(3, "x"),  # type: ignore[arg-type]
    "the source is closed": lambda tmp: _read_closed(),
    "a package for this protocol is missing: paramiko": lambda tmp: or_output_error(
        _raise(ImportError("paramiko")), "o"
    ),
    "fsspec cannot write with this protocol": lambda tmp: or_output_error(_raise(NotImplementedError()), "o"),
    "what looks like a secret in the URL is removed": lambda tmp: _raise(
        ValueError(h5zarr.translate(OCEAN, target_url="https://host/a.nc?X-Amz-Signature=abc").warnings)
    )(),
    "module 'h5zarr' has no attribute 'nope'": lambda tmp: h5zarr.nope,
    "gather_seconds is -1, but must not be negative": lambda tmp: h5zarr.scan(OCEAN, network={"gather_seconds": -1}),
    "the bucket is in another region, or the request was signed for another region": lambda tmp: or_source_error(
        "s3://b/a.nc", 9, _raise(_answered("AuthorizationHeaderMalformed"))
    ),
    "the server ignores byte ranges and sends the whole file of 2.0 MB": lambda tmp: _raise(
        ValueError(ignores_ranges(2_000_000).what)
    )(),
    "'s3://bucket' has no directory in which 'a.nc' could be": lambda tmp: sibling_url("s3://bucket", "a.nc"),
    "not an HDF5 or netCDF file: this is a text file, which starts with b'Hello world'": lambda tmp: _raise(
        wrong_format(b"Hello world")
    )(),
    "include must be a list of strings, not of int": lambda tmp: h5zarr.translate(OCEAN, include=[1]),
    "include must be a list of strings, not one string": lambda tmp: h5zarr.translate(OCEAN, include="sst"),
}


def _decode(document: dict[str, Any]) -> None:
    decode_references(json.dumps(document).encode(), "refs.json")


def _raise(error: Exception) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def _answered(code: str) -> Exception:
    """Return an error like that of botocore."""
    error = OSError(code)
    error.response = {"Error": {"Code": code}}  # type: ignore[attr-defined]
    return error


def _read_closed() -> None:
    source = open_source(OCEAN)
    source.close()
    source.read_many([Span(0, 8)])


def _convert_unfilled(directory: Path) -> None:
    array = {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4", "fill_value": None, "order": "C"}
    array |= {"compressor": None, "filters": None}
    entries = {".zgroup": {"zarr_format": 2}, "v/.zarray": array, "v/0": "base64:AAAAAAAAAAA="}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in entries.items()}
    (directory / "refs.json").write_text(json.dumps(texts))
    h5zarr.convert(directory / "refs.json", directory / "out.json")


def _convert_directory(directory: Path, metadata: dict[str, Any]) -> None:
    (directory / "data").mkdir()
    (directory / "data" / ".zmetadata").write_text(json.dumps(metadata))
    h5zarr.convert(directory / "data", directory / "out.json")


@pytest.mark.parametrize("message", TRIGGERS)
def test_the_message_is_given(message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        assert TRIGGERS[message](tmp_path) == 2
        said = capsys.readouterr().err
    except (h5zarr.H5ZarrError, AttributeError, TypeError, ValueError) as error:
        said = str(error)
    assert message in said


@pytest.mark.parametrize("room", rooms())
def test_every_message_of_the_room_is_triggered_by_a_test(room: str) -> None:
    found = messages(room)
    assert {place: parts for place, parts in found.items() if not any(map(is_triggered, parts))} == {}


def test_messages_are_found_in_the_source() -> None:
    found = messages("commands/combine") | messages("formats.py") | messages("limits.py")
    assert len(found) > 20
    assert any("both have the same part of" in parts for parts in found.values())
    assert not is_triggered(" ".join(("here", "gallop", "never", "zebras")[::-1]))

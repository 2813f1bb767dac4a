from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from h5zarr.commands.translate.translate import translate
from h5zarr.containers.json.json_recognition import is_own_references
from tests.collections_of_files import SAMPLES


@pytest.mark.parametrize("name", ["refs.json", "refs.json.gz", "refs.json.zst"])
def test_references_of_h5zarr_are_known_by_their_first_bytes(tmp_path: Path, name: str) -> None:
    translate(SAMPLES / "ocean.nc", tmp_path / name)
    assert is_own_references((tmp_path / name).read_bytes())


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"version":1,"refs":{}}',
        b"\x89HDF",
        b"\x1f\x8b",
        b"\x1f\x8bjunk",
        b"\x28\xb5\x2f\xfd",
        b"\x28\xb5\x2f\xfdx",
    ],
)
def test_what_others_wrote_is_not_taken_for_ones_own(content: bytes) -> None:
    assert not is_own_references(content)
    assert not is_own_references(gzip.compress(content))

"""What rules say of metadata that their examples do not have: path, message and remedy, word by word."""

from __future__ import annotations

from typing import Any

import pytest

from h5zarr.commands.validate.validate import hold_against
from tests.commands.validate.examples import consolidated_v3, of_array, of_document, of_node
from tests.commands.validate.made import Change, Made, changed

UNKNOWN_FILTER = {"filter": "nonsense"}
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def consolidated(told: Any) -> Change:
    return lambda made: setattr(made, "consolidated", told)


def only_in_zmetadata(made: Made) -> None:
    made.consolidated = {"zarr_consolidated_format": 1, "metadata": {**made.nodes, "gone/.zarray": made.array()}}


def with_stray_keys(made: Made) -> None:
    made.refs.update({f"stray{number}": "base64:AA==" for number in range(200)})


FINDINGS: dict[str, tuple[str, Change]] = {
    "templates is not an object that maps names to texts": ("json3", of_document(templates={"u": 3})),
    "other keys that no reader uses": ("json3", with_stray_keys),
    "filters is neither null nor a list of objects with ids": ("json2", of_array(filters=[3])),
    'it needs "zarr_consolidated_format": 1 and metadata': ("json2", consolidated({"metadata": {}})),
    "it is in .zmetadata, but has no metadata of its own": ("json2", only_in_zmetadata),
    '"nonsense" is not a known HDF5 filter': (
        "json2",
        of_array(filters=[{"id": "h5zarr.filter", **UNKNOWN_FILTER}]),
    ),
    "it is an array, but there are nodes below it": (
        "json3",
        of_node("v/g/zarr.json", {"zarr_format": 3, "node_type": "group"}),
    ),
    '"odd" is not a known chunk key encoding': ("json3", of_array(chunk_key_encoding={"name": "odd"})),
    '"odd" is not a known chunk grid': ("json3", of_array(chunk_grid={"name": "odd"})),
    "the array has 2 dimensions, its chunks have 1": (
        "json3",
        of_array(chunk_grid={"name": "regular", "configuration": {"chunk_shape": [2]}}),
    ),
    "there are 2 array-to-bytes codecs, but there must be one": ("json3", of_array(codecs=[LITTLE, LITTLE])),
    "storage_transformers is not a list of names or objects with names": ("json3", of_array(storage_transformers=3)),
    '".." is not a valid node name': ("json3", of_node("../zarr.json", {"zarr_format": 3, "node_type": "group"})),
    "consolidated_metadata is not an object with metadata": ("json3", consolidated({"kind": "inline"})),
    "it is not in the consolidated metadata, so readers will miss it": (
        "json3",
        consolidated_v3(lambda told: told["metadata"].pop("v")),
    ),
}


@pytest.mark.parametrize("message", FINDINGS)
def test_the_finding_says_what_is_wrong_and_what_to_do(message: str) -> None:
    form, change = FINDINGS[message]
    result = hold_against(changed(form, change).decode(), "made")
    found = [one for one in result.findings if one.message.endswith(message)]
    assert found
    assert all(one.path and one.remedy for one in found)

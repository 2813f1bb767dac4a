from __future__ import annotations

from typing import Any

import pytest

from h5zarr.containers.cube_layout import CubeLayout
from h5zarr.containers.provenance import Provenance
from h5zarr.errors import MalformedFile

LAYOUT: dict[str, Any] = {
    "axes": {"/time": 5},
    "pieces": [
        {"source": "/data/a.nc", "at": {"/time": [[0, 0, 3]]}},
        {"source": "/data/b.nc", "at": {"/time": [[3, 1, 2]]}},
    ],
}


def test_the_layout_of_a_cube_is_part_of_its_provenance() -> None:
    document = {"version": "1", "sources": [], "cube": LAYOUT}
    provenance = Provenance.from_json(document)
    assert provenance.to_json() == document
    assert provenance.cube is not None
    assert provenance.cube.pieces[1].at["/time"] == ((3, 1, 2),)


def test_secrets_are_not_written() -> None:
    layout = CubeLayout.from_json(
        {"axes": {}, "pieces": [{"source": "https://host/a.nc?X-Amz-Signature=abc", "at": {}}]}
    )
    assert "abc" not in str(layout.to_json())


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"axes": {"/time": -1}, "pieces": []},
        {"axes": {"/time": 5}, "pieces": [{"source": 1, "at": {}}]},
        {"axes": {"/time": 5}, "pieces": [{"source": "a", "at": {"/time": [[4, 0, 2]]}}]},
        {"axes": {"/time": 5}, "pieces": [{"source": "a", "at": {"/x": [[0, 0, 2]]}}]},
    ],
    ids=["empty", "a negative length", "no name", "a piece of a cube is outside of its axis", "an unknown axis"],
)
def test_a_layout_of_another_form_is_refused(value: Any) -> None:
    with pytest.raises(MalformedFile, match="the layout of the cube does not have h5zarr's form"):
        tuple(CubeLayout.from_json(value).pieces)

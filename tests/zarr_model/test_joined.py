from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from h5zarr.zarr_model.joined import decode_joined, encode_joined, is_part, part_path

DOCUMENT: dict[str, Any] = {
    "dimensions": ["time", "x"],
    "shape": [9, 8],
    "axes": [0],
    "parts": [
        {"path": "_h5zarr_parts/v/0/v", "boxes": [[[0, 0, 3]], [[6, 3, 3]]]},
        {"path": "_h5zarr_parts/v/1/v", "boxes": [[[3, 0, 3]]]},
    ],
}


def test_a_joined_variable_survives_json() -> None:
    joined = decode_joined(DOCUMENT)
    assert encode_joined(joined) == DOCUMENT
    np.testing.assert_array_equal(joined.parts[0].boxes[:, 0, 0], [0, 6])


def test_parts_are_in_groups_of_their_own() -> None:
    assert part_path("/v", 0) == "/_h5zarr_parts/v/0/v"
    assert part_path("/g/v", 3) == "/g/_h5zarr_parts/v/3/v"
    assert is_part("/g/_h5zarr_parts/v/3")
    assert not is_part("/g/v")


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"dimensions": ["time"]}, "does not have a name for each dimension"),
        ({"shape": [9, -1]}, "has a length that is not a number"),
        ({"axes": [2]}, "a joined variable has axes that are not its dimensions"),
        ({"axes": []}, "a joined variable has axes that are not its dimensions"),
        ({"parts": [{"path": "p", "boxes": [[[7, 0, 3]]]}]}, "a part of a joined variable lies outside of it"),
        ({"parts": [{"path": "p", "boxes": [[[-1, 0, 3]]]}]}, "a part of a joined variable lies outside of it"),
        ({"parts": [{"path": "../p", "boxes": [[[0, 0, 3]]]}]}, "a part of a joined variable has no path"),
    ],
)
def test_what_is_malformed_is_refused(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        decode_joined(DOCUMENT | changes)

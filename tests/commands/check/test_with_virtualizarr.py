"""What the check says of combining is what VirtualiZarr does: it joins these files, or refuses to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import xarray as xr

from h5zarr.commands.check.check import check
from tests.commands.check.test_combining import write

virtualizarr = pytest.importorskip("virtualizarr")
from obspec_utils.registry import ObjectStoreRegistry  # noqa: E402
from obstore.store import LocalStore  # noqa: E402

from h5zarr.virtualizarr import Parser  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")


def join(paths: list[Path]) -> xr.Dataset:
    """Return the files joined along time by their references."""
    registry = ObjectStoreRegistry({"file://": LocalStore()})
    choices: dict[str, Any] = {"registry": registry, "parser": Parser(), "loadable_variables": ["time", "x"]}
    datasets = [virtualizarr.open_virtual_dataset(f"file://{path}", **choices) for path in paths]
    common: dict[str, Any] = {"data_vars": "minimal", "coords": "minimal", "compat": "override"}
    joined: xr.Dataset = xr.concat(datasets, "time", join="exact", combine_attrs="override", **common)
    return joined


def is_possible(paths: list[Path]) -> bool:
    """Return whether h5zarr says that the files can become plain arrays."""
    combining = check(paths).combining
    assert combining is not None
    return combining.is_possible


@pytest.mark.parametrize("changes", [{}, {"steps": 8}], ids=["alike", "longer"])
def test_what_can_be_combined_is(tmp_path: Path, changes: dict[str, Any]) -> None:
    paths = [write(tmp_path / "a.nc", **changes), write(tmp_path / "b.nc")]
    assert is_possible(paths)
    assert join(paths).sizes == {"time": changes.get("steps", 4) + 4, "x": 600}


@pytest.mark.parametrize(
    "changes",
    [
        {"dtype": "<i4"},
        {"chunks": (1, 600)},
        {"compression": 9},
        {"width": 601, "chunks": (2, 600)},
        {"first_x": 1.0},
        {"steps": 5},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_cannot_be_combined_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    paths = [write(tmp_path / "a.nc", **changes), write(tmp_path / "b.nc")]
    assert not is_possible(paths)
    with pytest.raises((ValueError, NotImplementedError, TypeError)):
        join(paths)

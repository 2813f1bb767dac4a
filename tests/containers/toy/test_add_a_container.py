"""The recipe "Add a container" in CONTRIBUTING.md, carried out: one folder and one row, and every command works."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import zarr

from h5zarr.cli import main
from h5zarr.commands.convert.convert import convert
from h5zarr.commands.index.index import index
from h5zarr.commands.translate.translate import translate
from h5zarr.commands.verify.verify import verify
from h5zarr.containers import registry
from h5zarr.containers.container import ABSENT, Content, Output
from h5zarr.errors import OutputError
from h5zarr.io.location import Location
from h5zarr.store import open_store
from tests.containers.toy.npz_container import NpzContainer

OCEAN = Path(__file__).parents[3] / "sample_data" / "ocean.nc"


@pytest.fixture(autouse=True)
def row(monkeypatch: pytest.MonkeyPatch) -> NpzContainer:
    """Add a row to the registry."""
    container = NpzContainer()
    monkeypatch.setattr(registry, "CONTAINERS", (container, *registry.CONTAINERS))
    return container


@pytest.fixture
def references(tmp_path: Path) -> Path:
    out = tmp_path / "ocean.npz"
    translate(OCEAN, out)
    return out


def same_as_the_file(dataset: xr.Dataset) -> None:
    with xr.open_dataset(OCEAN, engine="netcdf4") as expected:
        xr.testing.assert_identical(dataset.load(), expected.load())


def test_translate_writes_it_and_the_engine_opens_it_unasked(references: Path) -> None:
    assert references.read_bytes()[:4] == b"PK\x03\x04"
    with xr.open_dataset(references, engine="h5zarr") as dataset:
        same_as_the_file(dataset)
    with xr.open_dataset(references) as dataset:
        same_as_the_file(dataset)


def test_convert_goes_there_and_back_byte_for_byte(tmp_path: Path, references: Path) -> None:
    translate(OCEAN, tmp_path / "direct.json")
    convert(references, tmp_path / "back.json")
    assert (tmp_path / "back.json").read_bytes() == (tmp_path / "direct.json").read_bytes()
    convert(tmp_path / "direct.json", tmp_path / "again.npz")
    with xr.open_dataset(tmp_path / "again.npz", engine="h5zarr") as dataset:
        same_as_the_file(dataset)


def test_open_store_reads_it(references: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = zarr.open_group(open_store(references), mode="r")
        with xr.open_dataset(OCEAN, engine="netcdf4", decode_cf=False) as expected:
            for name, array in group.arrays():
                np.testing.assert_array_equal(array[...], expected[name].values)


def test_verify_compares_it_with_the_file(references: Path) -> None:
    assert verify(references).is_right


def test_index_offers_its_format_and_rebuilds_its_catalog(tmp_path: Path) -> None:
    out = tmp_path / "index"
    with ThreadPoolExecutor(1) as pool:
        report = index([str(OCEAN)], out, format="npz", executor=pool)
    (made,) = out.rglob("*.npz")
    assert not report.failed
    with xr.open_dataset(made, engine="h5zarr") as dataset:
        same_as_the_file(dataset)
    assert main(["index", str(OCEAN), str(out), "--format", "npz", "--rebuild-catalog", "--workers", "1"]) == 0


def test_inspect_shows_it(references: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(references)]) == 0
    assert "references in an .npz file, written by h5zarr" in capsys.readouterr().out


def test_the_command_line_says_that_these_are_references(
    references: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["translate", str(references), str(tmp_path / "out.json")]) == 2
    assert "these are references" in capsys.readouterr().err


def test_what_the_row_says_is_checked_before_anything_is_read(tmp_path: Path, row: NpzContainer) -> None:
    with pytest.raises(OutputError, match=r"an \.npz file holds Zarr version 3"):
        convert(tmp_path / "nothing.json", tmp_path / "a.npz", zarr_format=2)
    assert row.state(Output(location=Location.parse(tmp_path / "a.npz"))) == ABSENT


def test_its_state_tells_whose_it_is(tmp_path: Path, references: Path, row: NpzContainer) -> None:
    state = row.state(Output(location=Location.parse(references)))
    assert state.content is Content.OWN
    assert state.identity is not None
    assert state.identity.nbytes == references.stat().st_size
    (tmp_path / "other.npz").write_bytes(b"something else")
    assert row.state(Output(location=Location.parse(tmp_path / "other.npz"))).content is Content.OTHER

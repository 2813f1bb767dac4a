"""The name of an output says what it is; a name that does not is refused before anything is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import h5zarr
from h5zarr.cli import main
from h5zarr.containers.registry import container_for_output
from h5zarr.errors import OutputError, WrongOutput
from h5zarr.io.location import Location

SOURCE = Path(__file__).parents[2] / "sample_data" / "ocean.nc"


@pytest.mark.parametrize(
    ("name", "container"),
    [
        ("a.json", "json"),
        ("a.json.gz", "json"),
        ("s3://bucket/a.json.zst?versionId=x", "json"),
        ("simplecache::memory://a.json", "json"),
        ("-", "json"),
        ("/dev/null", "json"),
        ("a.parquet", "parquet"),
        ("a.parquet/", "parquet"),
        ("https://host/a.parquet?token=x", "parquet"),
        ("icechunk+file:///a", "icechunk"),
        ("icechunk+s3://bucket/a.nc", "icechunk"),
    ],
)
def test_a_name_selects_its_container(name: str, container: str) -> None:
    assert container_for_output(Location.parse(name)).traits.name == container


@pytest.mark.parametrize(
    "name",
    ["out.zarr", "b.nc", "out", "out/", "json", "a.json.bz2", "a.gz", "a.JSON", "memory://b.nc", "s3://bucket/a", ""],
)
def test_any_other_name_is_refused(name: str) -> None:
    with pytest.raises(WrongOutput, match=r"ends in \.json, \.json\.gz, \.json\.zst or \.parquet") as caught:
        container_for_output(Location.parse(name))
    assert isinstance(caught.value, OutputError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("b.nc", "give b.json. To write references for many files, use h5zarr index."),
        ("out.zarr", "give out.json. h5zarr writes references to the file, not a Zarr store with a copy of its data."),
        ("out", "give out.json."),
    ],
)
@pytest.mark.parametrize("command", ["translate", "convert"])
def test_the_command_line_says_what_to_use_instead(
    command: str,
    name: str,
    remedy: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([command, "missing.nc", name]) == 2  # the name is checked first
    told = capsys.readouterr().err
    assert told.startswith(f"h5zarr: {name}: the name of an output")
    assert remedy in told
    assert os.listdir(tmp_path) == []


def test_two_names_that_the_shell_made_of_a_pattern_do_not_cost_the_second(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.nc", "b.nc"):
        (tmp_path / name).write_bytes(SOURCE.read_bytes())
    assert main(["translate", str(tmp_path / "a.nc"), str(tmp_path / "b.nc")]) == 2
    assert "h5zarr index" in capsys.readouterr().err
    assert (tmp_path / "b.nc").read_bytes() == SOURCE.read_bytes()


def test_a_written_translation_needs_a_name_too(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the name of an output"):
        h5zarr.translate(SOURCE).write(tmp_path / "out.zarr")
    assert os.listdir(tmp_path) == []

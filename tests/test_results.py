"""Results are short on a screen, print what the command prints, and can be sent to other processes."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import h5zarr
from h5zarr.cli import main
from h5zarr.cli.common import phrase
from h5zarr.hdf5.model import H5File
from h5zarr.io.source import open_source
from h5zarr.io.steps import run
from h5zarr.netcdf3.classic_file import ClassicFile
from tests.collections_of_files import SAMPLES
from tests.commands.index.jobs import unmarked

FILE_COUNT = 200
SHORT = 500
SECONDS = re.compile(r"\d+\.\d\d s\b")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with many files, most of them equal, under a long path."""
    root = tmp_path_factory.mktemp("many") / ("long_" * 30)
    root.mkdir()
    for number in range(FILE_COUNT):
        (root / f"{number:03d}.nc").symlink_to(SAMPLES / "ocean.nc")
    (root / "broken.nc").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(500))
    return root


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with many datasets, and a dataset with many chunks."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path_factory.mktemp("large") / "large.h5"
    with h5py.File(path, "w") as file:
        for number in range(400):
            file[f"group_{number % 7}/dataset_{number}"] = np.arange(3)
        file.create_dataset("chunked", data=np.zeros((600, 4)), chunks=(1, 4))
        file.create_dataset("opaque", data=np.zeros(3, "V5"))
    return path


def without_time(text: str) -> str:
    return SECONDS.sub("0.00 s", text)


Make = Callable[[Path, Path, Path], Any]
RESULTS: dict[str, Make] = {
    "H5File": lambda many, large, tmp_path: h5zarr.scan(large),
    "ClassicFile": lambda many, large, tmp_path: h5zarr.scan(SAMPLES / "classic_by_netcdf.nc"),
    "Translation": lambda many, large, tmp_path: h5zarr.translate(large),
    "Conversion": lambda many, large, tmp_path: h5zarr.convert(
        written(h5zarr.translate(large), tmp_path), tmp_path / "again.json"
    ),
    "CheckReport": lambda many, large, tmp_path: h5zarr.check(many),
    "Inspection": lambda many, large, tmp_path: h5zarr.inspect(large),
    "Outcome": lambda many, large, tmp_path: next(h5zarr.translate_many([large])),
    "failed Outcome": lambda many, large, tmp_path: next(h5zarr.translate_many([many / "broken.nc"])),
    "Validation": lambda many, large, tmp_path: h5zarr.validate(written(h5zarr.translate(large), tmp_path), nz=True),
    "Verification": lambda many, large, tmp_path: h5zarr.verify(written(h5zarr.translate(large), tmp_path)),
    "HierarchyStore": lambda many, large, tmp_path: h5zarr.open_store(SAMPLES / "ocean.nc"),
    "IndexReport": lambda many, large, tmp_path: h5zarr.index(many, tmp_path / "refs", workers=1),
    "Summary": lambda many, large, tmp_path: indexed(many, tmp_path),
}


def written(translation: h5zarr.Translation, directory: Path) -> Path:
    translation.write(directory / "references.json")
    return directory / "references.json"


def indexed(many: Path, directory: Path) -> Any:
    h5zarr.index(many, directory / "refs", workers=1)
    return h5zarr.status(directory / "refs")


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_short_and_pickles(name: str, many: Path, large: Path, tmp_path: Path) -> None:
    if name in ("IndexReport", "Summary"):
        pytest.importorskip("pyarrow")
    result = RESULTS[name](many, large, tmp_path)
    told = repr(result)
    assert told.startswith(f"<h5zarr.{name.rpartition(' ')[2]}")
    assert len(told) <= SHORT
    again = pickle.loads(pickle.dumps(result))
    assert repr(again) == told
    assert str(again) == str(result)


def test_the_parts_of_results_are_short(many: Path, large: Path) -> None:
    report = h5zarr.check(many)
    assert max(len(repr(file)) for file in report.files) <= SHORT
    assert len(repr(report.combining)) <= SHORT
    scanned = h5zarr.scan(large)
    assert max(len(repr(found)) for found in scanned.objects.values()) <= SHORT
    assert len(repr(h5zarr.translate(large).hierarchy)) <= SHORT


# --- the text is that of the command


def printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    main(arguments)
    done = capsys.readouterr()
    return without_time(done.err + done.out)


def test_a_translation_prints_what_the_command_prints(
    large: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = h5zarr.translate(large, tmp_path / "one.json", exclude=["opaque"])
    told = printed(["translate", str(large), str(tmp_path / "two.json"), "--exclude", "opaque"], capsys)
    assert without_time(phrase(f"{result}\n")) == told
    assert "401 arrays" in told


def test_problems_of_a_translation_print_as_at_the_prompt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = SAMPLES / "types_references_latest.h5"
    result = h5zarr.translate(source)
    told = printed(["translate", str(source), str(tmp_path / "two.json")], capsys)
    assert result.problems
    assert without_time(phrase(f"{result}\n")) == told


def test_a_conversion_prints_what_the_command_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = written(h5zarr.translate(SAMPLES / "ocean.nc"), tmp_path)
    result = h5zarr.convert(source, tmp_path / "one.json", zarr_format=2)
    told = printed(["convert", str(source), str(tmp_path / "two.json"), "--zarr-format", "2"], capsys)
    assert without_time(f"{result}\n") == told


def test_a_check_prints_what_the_command_prints(many: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert phrase(f"{h5zarr.check(many)}\n") == printed(["check", str(many)], capsys)


def test_an_inspection_prints_what_the_command_prints(large: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = printed(["inspect", str(large)], capsys)
    assert "use --all" in told
    assert phrase(f"{h5zarr.inspect(large)}\n") == told


@pytest.mark.parametrize("container", ["references.json", "damaged.json"])
def test_a_validation_prints_what_the_command_prints(
    container: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = written(h5zarr.translate(SAMPLES / "ocean.nc"), tmp_path)
    (tmp_path / "damaged.json").write_text(whole.read_text().replace("int16", "int17"))
    result = h5zarr.validate(tmp_path / container)
    assert result.is_valid == (container == "references.json")
    told = printed(["validate", str(tmp_path / container)], capsys)
    assert without_time(phrase(f"{result}\n")) == told


def test_a_verification_prints_what_the_command_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "ocean.nc"
    source.write_bytes((SAMPLES / "ocean.nc").read_bytes())
    references = written(h5zarr.translate(source), tmp_path)
    told = printed(["verify", str(references)], capsys)
    assert without_time(f"{h5zarr.verify(references)}\n") == told
    source.write_bytes(source.read_bytes() + b"more")
    told = printed(["verify", str(references)], capsys)
    assert f"{h5zarr.verify(references)}\n" == told
    assert "changed" in told


def test_an_index_prints_what_the_command_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow")
    sources = tmp_path / "sources"
    sources.mkdir()
    for number in range(2):
        (sources / f"{number}.nc").write_bytes((SAMPLES / "ocean.nc").read_bytes())
    report = h5zarr.index(sources, tmp_path / "one", workers=1)
    said = printed(["index", str(sources), str(tmp_path / "two"), "--workers", "1"], capsys)
    _, *told = unmarked(said).splitlines()
    assert without_time(str(report)).splitlines() == told
    (sources / "0.nc").unlink()
    again = h5zarr.index(sources, tmp_path / "one", workers=1, dry_run=True)
    _, *told = unmarked(printed(["index", str(sources), str(tmp_path / "two"), "--dry-run"], capsys)).splitlines()
    assert phrase(str(again)).splitlines() == told
    assert "dry_run=True" in str(again)
    told_status = printed(["status", str(tmp_path / "one")], capsys)
    assert phrase(f"{h5zarr.status(tmp_path / 'one')}\n") == told_status


# --- scans


def test_a_scan_of_every_sample_pickles() -> None:
    for path in sorted(SAMPLES.glob("*.[hn][5c]")):
        scanned = h5zarr.scan(path)
        again = pickle.loads(pickle.dumps(scanned))
        assert repr(again) == repr(scanned)


def test_values_can_be_read_with_a_scan_that_was_sent_to_another_process() -> None:
    """Text of variable length is in heaps, which are not sent."""
    path = SAMPLES / "types_strings_vlen_latest.h5"
    scanned = h5zarr.scan(path)
    assert isinstance(scanned, H5File)
    again = pickle.loads(pickle.dumps(scanned))
    compared = 0
    with open_source(path) as source:
        for (name, dataset), (_, sent) in zip(scanned.datasets(), again.datasets(), strict=True):
            ours = run(scanned.contents.read_values(dataset), source.read_many)
            theirs = run(again.contents.read_values(sent), source.read_many)
            np.testing.assert_array_equal(ours, theirs, err_msg=name)
            compared += 1
    assert compared


def test_a_scan_of_a_netcdf3_file_has_its_header() -> None:
    scanned = h5zarr.scan(SAMPLES / "classic_by_netcdf.nc")
    assert isinstance(scanned, ClassicFile)
    assert [(one.name, scanned.shape(one)) for one in scanned.header.variables] != []

"""The README's commands and its example do what the README says."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
from pathlib import Path

import pytest

from h5zarr.cli import main
from tests.collections_of_files import PROJECT, SAMPLES

README = (PROJECT / "README.md").read_text()
COMMANDS = re.findall(r"```sh\n(.*?)\n```", README, re.DOTALL)


@pytest.fixture(autouse=True)
def beside_the_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a directory that has what the README's commands need, and where they may write."""
    (tmp_path / "sample_data").mkdir()
    for sample in (SAMPLES / "ocean.nc", *SAMPLES.glob("sst_*.nc")):
        shutil.copy(sample, tmp_path / "sample_data")
    monkeypatch.chdir(tmp_path)


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")
def test_the_example_prints_what_the_readme_says() -> None:
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    expected = re.search(r"```text\n(.*?)```", README, re.DOTALL)
    assert code is not None
    assert expected is not None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code[1], {})
    assert printed.getvalue() == expected[1]


def test_the_first_command_translates_a_sample() -> None:
    install, _, translate = COMMANDS[0].rpartition(" && ")
    assert install == "python3 -m venv .venv && .venv/bin/pip install -q ."
    program, *arguments = shlex.split(translate)
    assert program == ".venv/bin/h5zarr"
    assert arguments[0] == "translate"
    assert main(arguments) == 0
    assert Path(arguments[-1]).stat().st_size


def test_the_third_command_indexes_the_samples() -> None:
    pytest.importorskip("pyarrow")
    for command in COMMANDS[2].split(" && "):
        program, *arguments = shlex.split(command)
        assert program == "h5zarr"
        assert main(arguments) == 0
    assert Path("refs/ocean.nc.json").stat().st_size
    assert Path("refs/_h5zarr/catalog.parquet").stat().st_size


def test_the_last_command_combines_a_series(capsys: pytest.CaptureFixture[str]) -> None:
    program, *arguments = shlex.split(COMMANDS[3])
    assert program == "h5zarr"
    assert main(arguments) == 0
    lines = capsys.readouterr().err.splitlines()
    said = README.partition(COMMANDS[3])[2].partition("```text\n")[2].partition("```")[0].splitlines()
    assert lines[:-1] == said[:-1]
    assert lines[-1].rpartition(" · ")[0] == said[-1].rpartition(" · ")[0]  # the last part says how long it took


def test_the_second_command_is_what_is_run_before_a_change_lands() -> None:
    command = COMMANDS[1].removeprefix("python3 ")
    assert command.endswith(".venv/bin/pytest")
    assert command in (PROJECT / ".ci" / "run").read_text()

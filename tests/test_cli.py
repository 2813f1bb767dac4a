from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from h5zarr import __version__
from h5zarr.cli import main


@pytest.fixture
def ocean(tmp_path: Path) -> str:
    path = tmp_path / "ocean.h5"
    with h5py.File(path, "w") as file:
        file.attrs["title"] = "Ocean"
        time = file.create_dataset("time", data=np.arange(3.0), maxshape=(None,), chunks=(2,))
        time.make_scale("time")
        temp = file.create_dataset("grid/temp", (3, 4), "i2", chunks=(1, 4), shuffle=True, compression=4, fillvalue=-9)
        temp[:2] = 1
        temp.dims[0].attach_scale(time)
        temp.attrs["units"] = "K"
        file["short"] = h5py.SoftLink("/grid/temp")
    return str(path)


def test_inspect_shows_a_file(ocean: str, capsys: pytest.CaptureFixture[str]):
    assert main(["inspect", ocean]) == 0
    output = capsys.readouterr().out
    assert "    time = 3 (UNLIMITED)" in output
    assert "    temp  int16  (time=3, 4)\n        chunks (1, 4) · 2 of 3 · B-tree v1 · shuffle, deflate(4) · " in output
    assert "fill -9" in output
    assert "    short -> /grid/temp" in output
    last = output.splitlines()[-1]
    assert last.startswith("2 datasets in 2 groups, 4 chunks · ")
    assert " · a file of " in last


def test_inspect_writes_json(ocean: str, capsys: pytest.CaptureFixture[str]):
    assert main(["inspect", ocean, "--json", "--path", "temp"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert list(described["datasets"]) == ["/grid/temp"]
    assert described["datasets"]["/grid/temp"]["dimensions"] == ["time", None]
    assert described["nbytes"] == Path(ocean).stat().st_size


def test_colour_is_off_without_a_terminal_and_on_when_asked_for(ocean: str, capsys: pytest.CaptureFixture[str]):
    main(["inspect", ocean])
    assert "\x1b" not in capsys.readouterr().out
    main(["inspect", ocean, "--color", "always"])
    assert "\x1b[1mtemp\x1b[0m" in capsys.readouterr().out


def test_a_missing_file_is_reported_without_a_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    url = str(tmp_path / "none.nc")
    assert main(["inspect", url]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"h5zarr: {url}: ")
    assert captured.err.count(url) == 1
    assert captured.err.splitlines()[1].startswith("  ")


def test_a_file_of_another_format_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "text.nc").write_text("not HDF5 at all")
    assert main(["inspect", str(tmp_path / "text.nc")]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_damaged_object_is_a_problem_and_the_rest_is_shown(ocean: str, capsys: pytest.CaptureFixture[str]):
    with h5py.File(ocean) as file:
        address = h5py.h5o.get_info(file["time"].id).addr
    content = bytearray(Path(ocean).read_bytes())
    content[address] = 77  # the version of the object header
    Path(ocean).write_bytes(content)
    assert main(["inspect", ocean]) == 1
    output = capsys.readouterr().out
    assert "1 problem:\n  /time: " in output
    assert "temp  int16" in output
    assert ", 1 problem · " in output.splitlines()[-1]


def test_a_pattern_that_matches_nothing_is_an_error(ocean: str, capsys: pytest.CaptureFixture[str]):
    for extra in ([], ["--json"]):
        assert main(["inspect", ocean, "--path", "salt", *extra]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "nothing matches salt" in captured.err


@pytest.mark.parametrize(
    "argv",
    [[], ["inspect"], ["inspect", "x", "--depth", "0"], ["inspect", "x", "--storage-options", "novalue"], ["fly"]],
)
def test_wrong_usage_gives_two(argv: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(argv) == 2
    assert "usage:" in capsys.readouterr().err


def test_storage_options_are_json_when_they_can_be():
    from h5zarr.cli import build_parser

    options = ["--storage-options", "anon=true", "--storage-options", "key=a=b", "--storage-options", 'n={"x": 1}']
    parsed = build_parser().parse_args(["inspect", "x", *options])
    assert parsed.storage_options == {"anon": True, "key": "a=b", "n": {"x": 1}}


def test_help_and_version_are_printed(capsys: pytest.CaptureFixture[str]):
    assert main(["inspect", "--help"]) == 0
    assert "examples:" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"h5zarr {__version__}\n"


def test_help_imports_neither_numpy_nor_the_parser():
    script = "import sys; from h5zarr.cli import build_parser; build_parser().format_help(); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "h5zarr.cli" in modules
    assert not {"numpy", "fsspec", "h5zarr.hdf5", "h5zarr.commands.inspect"} & set(modules)


def test_a_reader_that_stops_early_gets_no_traceback(tmp_path: Path):
    path = tmp_path / "many.h5"
    with h5py.File(path, "w") as file:
        for number in range(3000):
            file[f"a_rather_long_name_to_fill_the_pipe_{number}"] = number
    command = [sys.executable, "-m", "h5zarr", "inspect", str(path), "--all"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_letters_that_the_terminal_lacks_are_replaced(ocean: str):
    command = [sys.executable, "-m", "h5zarr", "inspect", ocean]
    done = subprocess.run(
        command, capture_output=True, env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": ":".join(sys.path)}
    )
    assert done.returncode == 0
    assert done.stderr == b""
    assert b"shuffle, deflate(4)" in done.stdout


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "translate" in said.err
    assert "COMMAND --help shows examples" in said.err


def test_an_option_of_the_file_system_is_a_storage_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "s3://bucket/", "refs", "--endpoint-url", "http://localhost:9000"]) == 2
    said = capsys.readouterr().err
    assert "there is no option --endpoint-url: use --storage-options endpoint_url=VALUE, and --output-options" in said
    assert main(["inspect", "s3://bucket/a.nc", "--profile=hunter2"]) == 2
    said = capsys.readouterr().err
    assert said.endswith("there is no option --profile: use --storage-options profile=VALUE\n")


def test_a_bug_does_not_look_like_a_command_that_is_done(
    ocean: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("h5zarr.commands.inspect.inspect.inspect", fail)
    assert main(["inspect", ocean]) == 2
    said = capsys.readouterr().err
    assert "ZeroDivisionError: by zero" in said
    assert said.endswith("h5zarr: this is a bug in h5zarr. Please report it, with the lines above.\n")

from __future__ import annotations

import json
from pathlib import Path

import pytest

from h5zarr.cli import main
from tests.collections_of_files import SAMPLES
from tests.servers import Faults, RangeServer

SHORT = ("--network", "attempts=1", "--network", "timeout_seconds=0.3")


@pytest.mark.parametrize("command", ["translate", "inspect", "check", "index"])
def test_commands_that_scan_use_the_network_policy(command: str, tmp_path: Path) -> None:
    with RangeServer({"/ocean.nc": (SAMPLES / "ocean.nc").read_bytes()}) as server:
        (tmp_path / "sources.txt").write_text(server.url("/ocean.nc"))
        source = ["--files-from", str(tmp_path / "sources.txt")] if command == "index" else [server.url("/ocean.nc")]
        words = [command, *source, *_output(command, tmp_path)]
        main([*words, "--network", "first_read_nbytes=100", "--network", "latency_seconds=0.03"])
        assert (0, 99) in server.counts.gets


@pytest.mark.parametrize("command", ["convert", "verify", "validate"])
@pytest.mark.parametrize("suffix", [".json", ".parquet", ""])
def test_commands_that_read_references_use_the_network_policy(
    command: str, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faults = Faults(hang=frozenset(range(1, 100)))
    with RangeServer({f"/refs{suffix}": b"{}"}, faults=faults) as server:
        words = [command, server.url(f"/refs{suffix}"), *_output(command, tmp_path)]
        assert main([*words, *SHORT]) == 2
    assert "no answer within 0.3 seconds" in capsys.readouterr().err


def test_verify_reads_the_source_with_the_network_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RangeServer({"/ocean.nc": (SAMPLES / "ocean.nc").read_bytes()}) as server:
        refs = str(tmp_path / "refs.json")
        assert main(["translate", server.url("/ocean.nc"), refs]) == 0
        server.set_faults(Faults(hang=frozenset(range(1, 100))))
        assert main(["verify", refs, *SHORT]) == 2
    assert "no answer within 0.3 seconds" in capsys.readouterr().err


def _output(command: str, folder: Path) -> list[str]:
    """Return the output argument of a command, if it has one."""
    if command == "index":
        return [str(folder / "out"), "--workers", "1"]
    return [str(folder / "out.json")] if command in ("translate", "convert") else []


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ("hurry=1", "network has no 'hurry'; it has latency_seconds, bytes_per_second,"),
        ("attempts=many", "attempts=many: expected a number"),
        ("attempts=1.5", "attempts is 1.5, but must be a whole number"),
        ("attempts", "attempts=: expected a number"),
        ("attempts=0", "attempts is 0, but must be positive"),
    ],
)
def test_a_wrong_network_option_is_reported(wrong: str, complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "x.h5", "--network", wrong]) == 2
    assert complaint in capsys.readouterr().err


def test_the_report_tells_what_reading_took(tmp_path: Path) -> None:
    with RangeServer({"/ocean.nc": (SAMPLES / "ocean.nc").read_bytes()}) as server:
        report = tmp_path / "report.json"
        assert main(["translate", server.url("/ocean.nc"), str(tmp_path / "r.json"), "--report", str(report)]) == 0
    told = json.loads(report.read_text())
    assert (told["rounds"], told["requests"]) == (1, 1)

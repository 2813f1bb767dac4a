from __future__ import annotations

import json
from pathlib import Path

import pytest

from h5zarr.cli import main
from tests.collections_of_files import SAMPLES
from tests.servers import RangeServer


@pytest.mark.parametrize("command", ["translate", "inspect"])
def test_the_policy_of_the_command_line_is_that_of_the_requests(command: str, tmp_path: Path) -> None:
    with RangeServer({"/ocean.nc": (SAMPLES / "ocean.nc").read_bytes()}) as server:
        argv = [command, server.url("/ocean.nc"), *([str(tmp_path / "refs.json")] if command == "translate" else [])]
        assert main([*argv, "--policy", "first_read_nbytes=100", "--policy", "latency_seconds=0.03"]) == 0
        assert server.counts.gets[0] == (0, 99)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ("hurry=1", "there is no 'hurry'; there are latency_seconds, bytes_per_second,"),
        ("attempts=many", "attempts=many: a number is wanted"),
        ("attempts=1.5", "attempts=1.5: a number is wanted"),
        ("attempts", "attempts=: a number is wanted"),
        ("attempts=0", "attempts is 0, but must be positive"),
    ],
)
def test_a_policy_that_makes_no_sense_is_told(wrong: str, complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "x.h5", "--policy", wrong]) == 2
    assert complaint in capsys.readouterr().err


def test_the_report_tells_what_reading_took(tmp_path: Path) -> None:
    with RangeServer({"/ocean.nc": (SAMPLES / "ocean.nc").read_bytes()}) as server:
        report = tmp_path / "report.json"
        assert main(["translate", server.url("/ocean.nc"), str(tmp_path / "r.json"), "--report", str(report)]) == 0
    told = json.loads(report.read_text())
    assert (told["rounds"], told["requests"]) == (1, 1)

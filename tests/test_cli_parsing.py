"""The command line explains itself: suggestions, sizes, and the command that is meant."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from h5zarr.cli import build_parser, main
from h5zarr.cli.parsing import size
from tests.collections_of_files import SAMPLES
from tests.servers import RangeServer

OCEAN = str(SAMPLES / "ocean.nc")
Captured = pytest.CaptureFixture[str]


def test_translate_with_many_files_names_the_command_that_is_meant(tmp_path: Path, capsys: Captured) -> None:
    files = [str(tmp_path / name) for name in ("a.nc", "b.nc", "c.nc")]
    assert main(["translate", *files]) == 2
    said = capsys.readouterr().err
    assert "translate takes one SOURCE and one OUT, but 1 more was given" in said
    assert "For several files: h5zarr index SOURCE [SOURCE ...] OUT" in said
    assert "For one dataset of several files: h5zarr combine SOURCE [SOURCE ...] OUT" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["tranlsate", "a", "b"], "'tranlsate' is not one of .*: did you mean translate"),
        (["inspct", "a"], "did you mean inspect"),
        (["translate", "a", "b", "--inlcude", "sst"], "there is no option --inlcude: did you mean --include"),
        (["check", "a", "--anno"], "there is no option --anno: did you mean --anon"),
        (["translate", "a", "b", "--chunkbytes=8"], "there is no option --chunkbytes: did you mean --chunk-bytes"),
        (["translate", "a", "b", "--strict", "--xyzzy=secret"], r"there is no option --xyzzy\n"),
        (["index", "a", "b", "--format", "parket"], "'parket' is not one of .*: did you mean parquet"),
        (["inspect", "a", "--color", "alway"], "did you mean always"),
        (["inspect", "a", "--network", "timeout=3"], "network has no 'timeout'; .*: did you mean timeout_seconds"),
        (["inspect", "a", "--limits", "dept=3"], "limits has no 'dept'; .*: did you mean depth"),
        (["convert", "a", "b", "c", "d"], "convert takes one SOURCE and one OUT, but 2 more were given"),
        (["status", "a", "b"], "status takes one OUT, but 1 more was given"),
        (["inspect", "a", "sst"], "inspect takes one SOURCE, but 1 more was given\nFor one variable: .* --path NAME"),
        (["--verison"], "there is no option --verison: did you mean --version"),
        (["--xyzzy=secret", "inspect", "a"], r"there is no option --xyzzy\n"),
        (["help"], "'help' is not one of .*\nFor example: h5zarr translate .* h5zarr --help lists the commands"),
        (["ocean.nc", "ocean.json"], "'ocean.nc' is not one of .*\nFor example: h5zarr translate ocean.nc ocean.json"),
    ],
)
def test_what_is_mistyped_is_suggested(words: list[str], what: str, capsys: Captured) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert re.search(what, said), said
    assert "secret" not in said


@pytest.mark.parametrize("command", ["translate", "convert", "inspect", "status", "check", "index"])
def test_usage_is_short_so_that_the_error_stands_out(command: str, capsys: Captured) -> None:
    assert main([command, "a", "b", "--xyzzy"]) == 2
    assert len(capsys.readouterr().err.splitlines()) <= 3


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("0", 0),
        ("8000000", 8_000_000),
        ("8MB", 8_000_000),
        ("8M", 8_000_000),
        ("8 MB", 8_000_000),
        ("8mb".replace("m", "M"), 8_000_000),
        ("8MiB", 8 << 20),
        ("8Mi", 8 << 20),
        ("1.5kB", 1500),
        ("2KiB", 2048),
        ("3GiB", 3 << 30),
        ("1TB", 10**12),
        ("7B", 7),
    ],
)
def test_a_size_is_a_number_with_or_without_a_unit(text: str, nbytes: int) -> None:
    assert size(text) == nbytes


@pytest.mark.parametrize("text", ["", "MB", "-1", "8XB", "8iB", "8 M B", "0.3B", "eight", "8e6"])
def test_anything_else_is_not_a_size(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        size(text)


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["--chunk-bytes", "8MB"], "chunk_bytes", 8_000_000),
        (["--inline-bytes", "2KiB"], "inline_bytes", 2048),
        (["--max-inline-bytes", "1M"], "max_inline_bytes", 1_000_000),
        (["--network", "cache_nbytes=64MiB"], "network", {"cache_nbytes": 64 << 20}),
        (["--network", "bytes_per_second=100MB"], "network", {"bytes_per_second": 100_000_000}),
        (["--network", "first_read_nbytes=5000"], "network", {"first_read_nbytes": 5000}),
        (["--limits", "chunk_nbytes=1GiB"], "limits", {"chunk_nbytes": 1 << 30}),
        (["--limits", "depth=7"], "limits", {"depth": 7}),
    ],
)
def test_every_option_that_is_a_size_takes_units(words: list[str], name: str, value: object) -> None:
    arguments = build_parser().parse_args(["translate", "a.nc", "a.json", *words])
    assert getattr(arguments, name) == value


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--chunk-bytes", "0MB"], "expected at least 1 byte"),
        (["--chunk-bytes", "8 megabytes"], "expected a size such as 8MB, 8MiB or 8000000"),
        (["--network", "cache_nbytes=many"], "expected a size such as 8MB"),
        (["--limits", "depth=8MB"], "expected a positive number"),
    ],
)
def test_a_wrong_size_is_told(words: list[str], what: str, capsys: Captured) -> None:
    assert main(["translate", "a.nc", "a.json", *words]) == 2
    assert what in capsys.readouterr().err


READING = {"--storage-options", "--anon", "--network", "--limits"}
WRITING = {"--output-options"}


def test_options_for_reading_and_for_writing_have_the_same_names_in_every_command() -> None:
    commands = next(one for one in build_parser()._actions if isinstance(one, argparse._SubParsersAction)).choices
    for name, parser in commands.items():
        flags = {flag for action in parser._actions for flag in action.option_strings}
        needed = READING if name != "status" else {"--storage-options", "--anon", "--network"}
        assert needed <= flags, name
        assert (flags >= WRITING) == (name in ("translate", "convert", "combine", "index")), name


def test_the_summary_of_a_local_file_does_not_count_requests(tmp_path: Path, capsys: Captured) -> None:
    for words in (["translate", OCEAN, str(tmp_path / "out.json")], ["inspect", OCEAN]):
        assert main(words) == 0
        said = capsys.readouterr()
        assert re.search(r" · a file of 1\d\d kB", said.out + said.err)
        assert "request" not in said.out + said.err
    with RangeServer({"/ocean.nc": Path(OCEAN).read_bytes()}) as server:
        assert main(["inspect", server.url("/ocean.nc")]) == 0
    assert re.search(r" · 1 round, 1 request, 1\d\d kB of 1\d\d kB", capsys.readouterr().out)

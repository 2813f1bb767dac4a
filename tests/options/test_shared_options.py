"""Options that several commands share have an effect in each of them, at the prompt and in Python."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

import h5zarr
from h5zarr.cli import build_parser
from h5zarr.engine.entrypoint import H5ZarrBackendEntrypoint
from tests.options import prompt_only, reading, writing
from tests.options.bench import FUNCTIONS, Bench, arrays_in
from tests.options.files import DROP_INS, READ_FILES, READ_REFERENCES, make_file

pytestmark = pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning", "ignore:unclosed")

Effect = Callable[[Bench, str], None]
Effects = dict[tuple[str, str], Effect]

ENGINE = ("open_dataset", "open_datatree", "open_groups")
OPENING = (*READ_FILES, *READ_REFERENCES)
WRITING = ("translate", "index", "translate_many")


def in_all(option: str, effect: Effect, commands: Iterable[str]) -> Effects:
    """Return the part of the table for an option that has the same effect in several commands."""
    return {(option, command): effect for command in commands}


EFFECTS: Effects = {
    **in_all("storage_options", reading.storage_options, (*OPENING, *DROP_INS, "status")),
    **in_all("anon", reading.anon, (*OPENING, *DROP_INS, "status")),
    **in_all("network", reading.network, DROP_INS),
    **in_all("network", reading.network, (*OPENING, "status")),
    ("network", "index"): reading.network_of_index,
    **in_all("limits", reading.limits, OPENING),
    **in_all("allow", reading.allow_links, (*WRITING, "combine")),
    ("allow", "check"): reading.allow_links_in_check,
    **in_all("allow", reading.allow_local_files, ("verify", "open_store", *ENGINE)),
    **in_all("at", reading.at, ("convert", "inspect", "open_store", *ENGINE)),
    **in_all("at_once", reading.at_once, ("index", "check", "combine", "translate_many")),
    **in_all("group", writing.group, (*WRITING, "combine")),
    ("group", "check"): writing.group_in_check,
    ("group", "verify"): writing.group_in_verify,
    **in_all("group", writing.group_in_engine, ENGINE),
    **in_all("include", writing.include, (*WRITING, "combine")),
    ("include", "check"): writing.include_in_check,
    **in_all("exclude", writing.exclude, (*WRITING, "combine")),
    ("exclude", "check"): writing.exclude_in_check,
    **in_all("strict", writing.strict, ("translate", "combine", "translate_many")),
    ("strict", "index"): writing.strict_in_index,
    ("strict", "convert"): writing.strict_in_convert,
    **in_all("zarr_format", writing.zarr_format, WRITING),
    ("zarr_format", "convert"): writing.zarr_format_in_convert,
    **in_all("nz", writing.nz, WRITING),
    ("nz", "validate"): writing.nz_in_validate,
    **in_all("chunk_bytes", writing.chunk_bytes, WRITING),
    **in_all("inline_bytes", writing.inline_bytes, WRITING),
    **in_all("max_inline_bytes", writing.max_inline_bytes, WRITING),
    ("max_inline_bytes", "combine"): writing.max_inline_bytes_in_combine,
    **in_all("along", writing.along, ("combine", "check")),
    **in_all("dry_run", writing.dry_run, ("combine", "index")),
    **in_all("joinable", writing.joinable, WRITING),
    **in_all("output_options", writing.output_options, ("translate", "convert", "combine", "index")),
    **in_all("overwrite", writing.overwrite, ("translate", "convert", "combine", "index")),
    **in_all("branch", writing.branch, ("translate", "convert", "combine")),
    **in_all("message", writing.message, ("translate", "convert", "combine")),
    ("workers", "index"): writing.workers_of_index,
    ("workers", "verify"): writing.workers_of_verify,
}
PROMPT_EFFECTS: Effects = {
    **in_all("report", prompt_only.report, ("translate", "convert", "combine", "index", "verify", "validate")),
    **in_all("overwrite", prompt_only.overwrite, ("verify", "validate")),
    **in_all("quiet", prompt_only.quiet, ("translate", "convert", "combine", "index", "verify", "validate")),
    **in_all("json", prompt_only.in_json, ("inspect", "status", "check")),
    **in_all("files_from", prompt_only.files_from, ("index", "check", "combine")),
    **in_all("prune", prompt_only.prune, ("index", "combine")),
    ("along", "index"): prompt_only.along_in_index,
    **in_all("config", prompt_only.config, ("index", "status")),
    **in_all("collection", prompt_only.collection, ("index", "status")),
    ("all", "inspect"): prompt_only.all_in_inspect,
    ("all", "check"): prompt_only.all_in_check,
    ("all", "status"): prompt_only.all_in_status,
}
AT_PROMPT: Effects = {**{key: effect for key, effect in EFFECTS.items() if key[1] not in FUNCTIONS}, **PROMPT_EFFECTS}
PROMPT_ONLY = {"report", "quiet", "json", "files_from", "color", "all", "log_format", "metrics", "job", "overwrite"}
PROMPT_ONLY |= {"push_metrics", "otel", "config", "collection"}
PROMPT_ONLY |= {"update", "cube", "along"}  # the function h5zarr.update, and `cubes` of h5zarr.index


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bench:
    return Bench(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize(("option", "command"), EFFECTS)
def test_an_option_has_its_effect_in_python(option: str, command: str, bench: Bench) -> None:
    EFFECTS[option, command](bench, command)


@pytest.mark.parametrize(("option", "command"), AT_PROMPT)
def test_an_option_has_its_effect_at_the_prompt(option: str, command: str, bench: Bench) -> None:
    AT_PROMPT[option, command](replace(bench, at_prompt=True), command)


def test_without_anon_requests_are_signed(bench: Bench) -> None:
    reading.not_anon(bench, "inspect")


@pytest.mark.parametrize("command", WRITING)
def test_without_options_none_of_the_effects_is_seen(command: str, bench: Bench) -> None:
    refs = bench.write(command, make_file(bench.folder / "file.h5"))
    assert arrays_in(refs) == {"long", "short", "g/h/deep"}
    assert "zarr_conventions" not in refs["zarr.json"].get("attributes", {})
    assert refs["long/zarr.json"]["chunk_grid"]["configuration"]["chunk_shape"] == [4000]
    assert isinstance(refs["long/c/0"], list)
    assert isinstance(refs["short/c/0"], str)


def declared() -> dict[str, list[str]]:
    """Return the options of each command."""
    (commands,) = (one for one in build_parser()._actions if isinstance(one, argparse._SubParsersAction))
    return {
        command: [one.dest for one in parser._actions if one.option_strings and one.dest != "help"]
        for command, parser in commands.choices.items()
    }


def parameters() -> dict[str, set[str]]:
    """Return the parameters of each public function that reads or writes."""
    names = (*declared(), "translate_many", "scan", "open_store", "update")
    found = {name: set(inspect.signature(getattr(h5zarr, name)).parameters) for name in names}
    engine = H5ZarrBackendEntrypoint
    methods = {"open_dataset": "open_dataset", "open_datatree": "open_datatree", "open_groups": "open_groups_as_dict"}
    found["combine"] |= found.pop("update")  # which is combine --update at the prompt
    return found | {name: set(inspect.signature(getattr(engine, one)).parameters) for name, one in methods.items()}


def test_every_shared_option_is_tested_with_every_command() -> None:
    shared = [(option, command) for command, options in declared().items() for option in options]
    names = [option for option, _ in shared]
    assert {one for one in shared if names.count(one[0]) > 1} - set(AT_PROMPT) == set()


def test_every_parameter_that_is_shared_is_tested_with_every_function() -> None:
    tested = {option for option, _ in EFFECTS}
    found = {(option, name) for name, options in parameters().items() for option in options & tested}
    assert found - set(EFFECTS) == set()


def test_every_option_is_a_parameter_of_the_same_name() -> None:
    missing = {(command, option) for command, names in declared().items() for option in names}
    missing -= {(command, option) for command, names in parameters().items() for option in names}
    assert {(command, option) for command, option in missing if option not in PROMPT_ONLY} == set()
    assert {option for _, option in missing} == PROMPT_ONLY


def test_xarray_knows_every_parameter_of_the_engine() -> None:
    known = set(H5ZarrBackendEntrypoint.open_dataset_parameters or ())
    assert known == parameters()["open_dataset"] - {"self"}

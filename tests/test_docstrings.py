"""Every public function and class explains itself: parameters, results, errors, and an example that runs."""

from __future__ import annotations

import dataclasses
import doctest
import inspect
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import h5zarr
from tests.collections_of_files import SAMPLES

FUNCTIONS = [name for name in h5zarr.__all__ if name[0].islower()]
ERRORS = ["H5ZarrError", "NotJoinable", "ProblemWarning", "SourceChanged"]
RESULTS = [name for name in h5zarr.__all__ if name[0].isupper() and name not in ERRORS]
SCANNED = [("h5zarr.hdf5.model", "H5File"), ("h5zarr.netcdf3.classic_file", "ClassicFile")]
ADAPTERS = [
    ("h5zarr.kerchunk", "SingleHdf5ToZarr", "kerchunk"),
    ("h5zarr.kerchunk", "NetCDF3ToZarr", "kerchunk"),
    ("h5zarr.virtualizarr", "Parser", "virtualizarr"),
    ("h5zarr.engine.entrypoint", "H5ZarrBackendEntrypoint", "xarray"),
]


def sections(thing: Any) -> dict[str, str]:
    """Return the sections of a numpydoc docstring by title; "" has the beginning."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.getdoc(thing) or "", flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def entries(section: str) -> list[str]:
    """Return the names that a section documents."""
    lines = [line for line in section.splitlines() if line and not line.startswith(" ")]
    return [name.strip().lstrip("*") for line in lines for name in line.partition(" : ")[0].split(",")]


def parameters(function: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def find(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def run_examples(thing: Any, name: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the examples of a docstring beside the sample files, and return how many there are."""
    for sample in SAMPLES.glob("*.*"):
        (directory / sample.name).symlink_to(sample)
    monkeypatch.chdir(directory)
    examples = doctest.DocTestParser().get_doctest(inspect.getdoc(thing) or "", {}, name, None, None)
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    failed = runner.run(examples, out=told.append).failed
    assert not failed, "".join(told)
    return len(examples.examples)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_documents_its_parameters_results_and_errors(name: str) -> None:
    function = getattr(h5zarr, name)
    found = sections(function)
    assert sorted(entries(found["Parameters"])) == sorted(parameters(function))
    assert {"Returns", "Raises", "Examples"} <= set(found) or {"Yields", "Raises", "Examples"} <= set(found)


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")
@pytest.mark.parametrize("name", [*FUNCTIONS, *RESULTS, *ERRORS])
def test_examples_of_the_api_print_what_they_say(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in ("index", "status", "IndexReport", "Summary"):
        pytest.importorskip("pyarrow")
    assert run_examples(getattr(h5zarr, name), name, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("module", "name"), [*((h5zarr._HOMES[name], name) for name in RESULTS), *SCANNED], ids=lambda one: one
)
def test_a_result_documents_its_attributes_and_methods(module: str, name: str) -> None:
    result = find(module, name)
    if dataclasses.is_dataclass(result):
        fields = [field.name for field in dataclasses.fields(result) if not field.name.startswith("_")]
    else:
        fields = list(result._fields)
    assert sorted(entries(sections(result)["Attributes"])) == sorted(fields)
    for member, value in vars(result).items():
        if member.startswith("_") or member in fields:
            continue
        assert inspect.getdoc(value), f"{name}.{member} has no docstring"
        if inspect.isfunction(value) and parameters(value):
            assert sorted(entries(sections(value).get("Parameters", ""))) == sorted(parameters(value)), member


@pytest.mark.parametrize(("module", "name", "package"), ADAPTERS)
def test_an_adapter_documents_its_parameters(module: str, name: str, package: str) -> None:
    pytest.importorskip(package)
    adapter = find(module, name)
    documented = adapter if name != "H5ZarrBackendEntrypoint" else adapter.open_dataset
    signature = adapter.__init__ if name != "H5ZarrBackendEntrypoint" else adapter.open_dataset
    found = sections(documented)
    assert sorted(entries(found["Parameters"])) == sorted(parameters(signature))
    assert "Examples" in found


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")
@pytest.mark.parametrize(("module", "name", "package"), ADAPTERS)
def test_examples_of_adapters_print_what_they_say(
    module: str, name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(package)
    adapter = find(module, name)
    documented = adapter if name != "H5ZarrBackendEntrypoint" else adapter.open_dataset
    assert run_examples(documented, name, tmp_path, monkeypatch)

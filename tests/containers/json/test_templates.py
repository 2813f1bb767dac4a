"""Braces: readers take "{{" in a URL for a template, if there are templates. No name and no value may become one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fsspec
import h5py
import numpy as np
import pytest
import xarray
import zarr
from zarr.storage import FsspecStore

from h5zarr.commands.translate.translate import translate
from h5zarr.store import open_store

TEXTS = ("{{u}}", "{{", "}}", "{u}", "{{ u }}", "{% raw %}", "{{u}}/base64:", "base64:", "base64:e3t1fX0=", "{# u #}")
FOLDER = "of {{u}} and {u}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with braces wherever there can be some: its path, names, attributes, values that are inlined or not."""
    folder = tmp_path / FOLDER
    folder.mkdir()
    with h5py.File(folder / "{{u}}.h5", "w") as file:
        for number, text in enumerate(TEXTS):
            name = text.replace("/", "")
            file.create_dataset(f"large {name}", data=number + np.arange(3000), chunks=(1000,))
            file[f"small {name}"] = np.frombuffer(text.encode(), "u1")
            file[f"text {name}"] = text
            file[f"large {name}"].attrs[name] = text
            file.attrs[name] = text
    return folder / "{{u}}.h5"


def open_group(references: Any, version: int, **options: Any) -> Any:
    """Return the root group that fsspec's reader shows."""
    filesystem = fsspec.filesystem("reference", fo=references, asynchronous=True, skip_instance_cache=True, **options)
    return zarr.open_group(FsspecStore(filesystem, read_only=True), mode="r", zarr_format=version)


def check(group: Any) -> None:
    for number, text in enumerate(TEXTS):
        name = text.replace("/", "")
        np.testing.assert_array_equal(group[f"large {name}"][:], number + np.arange(3000))
        assert group[f"large {name}"].attrs[name] == group.attrs[name] == text
        assert bytes(group[f"small {name}"][:]) == text.encode()
        assert group[f"text {name}"][()] in (text, text.encode())


@pytest.mark.parametrize("version", [3, 2])
@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
def test_nothing_in_references_is_taken_for_a_template(path: Path, version: int, tmp_path: Path) -> None:
    made = translate(path, tmp_path / "refs.json", zarr_format=version)
    assert not made.problems
    references = json.loads((tmp_path / "refs.json").read_bytes())
    assert "templates" not in references
    check(open_group(references, version))
    check(open_group(references, version, simple_templates=False))
    check(open_group(references["refs"], version))  # as version 0 of the format has it
    check(zarr.open_group(open_store(str(tmp_path / "refs.json")), mode="r"))
    (tmp_path / "version0.json").write_text(json.dumps(references["refs"]))
    check(zarr.open_group(open_store(str(tmp_path / "version0.json")), mode="r"))


def test_the_engine_of_kerchunk_takes_nothing_for_a_template(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("kerchunk")
    translate(path, tmp_path / "refs.json", zarr_format=2, inline_bytes=0)
    with xarray.open_dataset(str(tmp_path / "refs.json"), engine="kerchunk") as dataset:
        for number, text in enumerate(TEXTS):
            name = text.replace("/", "")
            np.testing.assert_array_equal(dataset[f"large {name}"], number + np.arange(3000))
            assert dataset.attrs[name] == text


def test_in_references_of_others_only_urls_are_made_of_templates(path: Path, tmp_path: Path) -> None:
    translate(path, tmp_path / "refs.json")
    entries = json.loads((tmp_path / "refs.json").read_bytes())["refs"]
    for value in entries.values():
        if isinstance(value, list):
            value[0] = "{{u}}"
    # Plain text that is not base64, as other tools write it.
    entries["small {{u}}/c/0"] = "{{u}}"
    references = {"version": 1, "templates": {"u": str(tmp_path / "plain.h5")}, "refs": entries}
    (tmp_path / "plain.h5").write_bytes(path.read_bytes())
    (tmp_path / "others.json").write_text(json.dumps(references))
    check(open_group(references, 3))
    check(zarr.open_group(open_store(str(tmp_path / "others.json")), mode="r"))

"""A branch that holds anything but references to the same file is replaced only if the user says so."""

from __future__ import annotations

import argparse
import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr

import h5zarr
from h5zarr.cli import build_parser, main
from h5zarr.containers.container import Commit, Content, Output
from h5zarr.containers.icechunk.icechunk_container import IcechunkContainer
from h5zarr.containers.source_state import SourceState
from h5zarr.containers.target import _BRANCH_REMEDY
from h5zarr.errors import OutputExists
from h5zarr.io.location import Location
from h5zarr.io.source import Identity
from h5zarr.kerchunk import references_v2
from tests.s3 import s3_server

icechunk = pytest.importorskip("icechunk")


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The location of a new repository, and the options to write there."""
    if request.param == "local":
        yield f"icechunk+file://{tmp_path}/repository", {}
        return
    with s3_server() as options:
        import s3fs  # type: ignore[import-untyped, unused-ignore]

        bucket = f"replacing-{secrets.token_hex(4)}"  # servers in one process share their buckets
        s3fs.S3FileSystem(**options, skip_instance_cache=True).mkdir(bucket)
        yield f"icechunk+s3://{bucket}/repository", {**options, "region": "us-east-1"}


def make(path: Path, name: str = "x") -> Path:
    with h5py.File(path, "w") as file:
        file[name] = np.arange(4000)
    return path


def arrays(url: str, options: Mapping[str, Any], at: str = "main") -> set[str]:
    storage = {"s3": dict(options), "file": {}} if options else {}
    store = h5zarr.open_store(url, storage_options=storage, at=at, verify=False)
    try:
        return set(zarr.open_group(store, mode="r").array_keys())
    finally:
        store.close()


def test_the_same_file_gets_another_snapshot(place: tuple[str, Mapping[str, Any]], tmp_path: Path) -> None:
    url, options = place
    for name in ("x", "y"):
        h5zarr.translate(make(tmp_path / "a.h5", name), url, output_options=options)
    assert arrays(url, options) == {"y"}


def test_another_file_is_refused_without_overwrite(place: tuple[str, Mapping[str, Any]], tmp_path: Path) -> None:
    url, options = place
    h5zarr.translate(make(tmp_path / "a.h5", "x"), url, output_options=options)
    other = make(tmp_path / "b.h5", "y")
    with pytest.raises(OutputExists, match=r"branch main holds references to .*a\.h5") as caught:
        h5zarr.translate(other, url, output_options=options)
    assert "h5zarr combine" in caught.value.remedy
    assert arrays(url, options) == {"x"}
    h5zarr.translate(other, url, output_options=options, branch="next")
    assert (arrays(url, options), arrays(url, options, "next")) == ({"x"}, {"y"})
    h5zarr.translate(other, url, output_options=options, overwrite=True)
    assert arrays(url, options) == {"y"}


@pytest.mark.filterwarnings("ignore:.*h5zarr did not write this snapshot")
def test_arrays_of_others_are_refused_without_overwrite(place: tuple[str, Mapping[str, Any]], tmp_path: Path) -> None:
    """Such as a cube that was made with VirtualiZarr, or commits of the user on top of h5zarr's."""
    url, options = place
    source = make(tmp_path / "a.h5")
    h5zarr.translate(source, url, output_options=options)
    storage = icechunk.local_filesystem_storage(f"{tmp_path}/repository")
    if options:
        access = {"access_key_id": options["key"], "secret_access_key": options["secret"], "region": "us-east-1"}
        access |= {"endpoint_url": options["endpoint_url"], "allow_http": True, "force_path_style": True}
        storage = icechunk.s3_storage(bucket=url.split("/")[2], prefix="repository", **access)
    session = icechunk.Repository.open(storage).writable_session("main")
    zarr.create_array(session.store, name="mine", shape=(2,), dtype="i4")
    session.commit("my own array")
    for write in (
        lambda **more: h5zarr.translate(source, url, output_options=options, **more),
        lambda **more: h5zarr.translate(source).write(url, output_options=options, **more),
    ):
        with pytest.raises(OutputExists, match="branch main holds arrays that h5zarr did not write"):
            write()
    assert arrays(url, options) == {"x", "mine"}
    h5zarr.translate(source, url, output_options=options, overwrite=True)
    assert arrays(url, options) == {"x"}


def test_a_dataset_of_many_files_is_not_replaced_by_one_of_them(tmp_path: Path) -> None:
    url = f"icechunk+file://{tmp_path}/repository"
    day = h5zarr.translate(make(tmp_path / "day1.h5"))
    second = SourceState(str(make(tmp_path / "day2.h5")), Identity(nbytes=1))
    cube = replace(day, provenance=replace(day.provenance, sources=(*day.provenance.sources, second)))
    cube.write(url)
    with pytest.raises(OutputExists, match=r"holds references to .*day1\.h5 and 1 more"):
        day.write(url)
    cube.write(url)


def test_converted_references_replace_those_to_the_same_files(tmp_path: Path) -> None:
    url = f"icechunk+file://{tmp_path}/repository"
    for name in ("a", "b"):
        kerchunk = h5zarr.translate(make(tmp_path / f"{name}.h5"), zarr_format=2, inline_bytes=0)
        made = replace(kerchunk, provenance=replace(kerchunk.provenance, sources=()))
        h5zarr.convert(_without_provenance(made, tmp_path / f"{name}.json"), url, branch=name)
        h5zarr.convert(tmp_path / f"{name}.json", url, branch=name)
    with pytest.raises(OutputExists, match=r"branch a holds references to .*a\.h5"):
        h5zarr.convert(tmp_path / "b.json", url, branch="a")


def _without_provenance(made: h5zarr.Translation, path: Path) -> Path:
    """Write references as kerchunk does, which does not record what they were made from."""
    path.write_text(json.dumps({"version": 1, "refs": references_v2(made)}))
    return path


def test_the_command_line_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"icechunk+file://{tmp_path}/repository"
    assert main(["translate", str(make(tmp_path / "a.h5")), url, "--quiet"]) == 0
    assert main(["translate", str(make(tmp_path / "b.h5")), url]) == 2
    told = capsys.readouterr().err
    assert "--overwrite" in told
    assert "--branch NAME" in told


def test_the_remedy_names_a_command_that_exists() -> None:
    (commands,) = (one for one in build_parser()._actions if isinstance(one, argparse._SubParsersAction))
    assert "h5zarr combine" in _BRANCH_REMEDY
    assert "combine" in commands.choices


def test_the_state_is_that_of_the_branch(tmp_path: Path) -> None:
    container, url = IcechunkContainer(), f"icechunk+file://{tmp_path}/repository"
    output = Output(location=Location.parse(url))
    assert container.state(output).content is Content.NOTHING
    source = make(tmp_path / "a.h5")
    h5zarr.translate(source, url)
    state = container.state(output)
    assert (state.content, state.sources) == (Content.OWN, (str(source),))
    other = Output(location=Location.parse(url), commit=Commit(branch="other"))
    assert container.state(other).content is Content.NOTHING
    (tmp_path / "file").write_text("mine")
    for name in ("file", "."):
        found = container.state(Output(location=Location.parse(f"icechunk+file://{tmp_path}/{name}")))
        assert (found.content, found.is_replaceable) == (Content.OTHER, False)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_directory_that_is_no_repository_is_left_alone(overwrite: bool, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(OutputExists, match="never replaces it"):
        h5zarr.translate(make(tmp_path / "a.h5"), f"icechunk+file://{tmp_path}/mine", overwrite=overwrite)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]

"""Snapshots: one for each translation, whole or not at all; and nothing that reads as fill without being it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr
import zarr

import h5zarr
from h5zarr.cli import main
from h5zarr.commands.translate.translate import translate
from h5zarr.containers.icechunk import icechunk_writing, virtual_refs
from h5zarr.containers.provenance import Provenance
from h5zarr.errors import OutputError, ProblemWarning
from h5zarr.zarr_model.hierarchy import TO_THE_END, GroupNode
from tests.containers.hierarchies import PROVENANCE, UTF8, RawFile, encode_text, make_array, make_hierarchy
from tests.containers.icechunk.repositories import messages, open_repository, open_snapshot, write_icechunk
from tests.made_files import make_ocean, make_plain
from tests.s3 import s3_server
from tests.servers import RangeServer

icechunk = pytest.importorskip("icechunk")
IS_FIRST = icechunk.__version__.startswith("1.")


def make_numbers(path: Path, values: Any, name: str = "x") -> Path:
    """Write a file with one dataset, in chunks that are too large to be inlined."""
    with h5py.File(path, "w") as file:
        file.create_dataset(name, data=values, chunks=(1000,))
    return path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "repository"


def url_of(place: Path) -> str:
    return f"icechunk+file://{place}"


# --- what is in it


def test_groups_missing_and_inline_chunks_scalars_text_and_several_files_are_all_there(
    tmp_path: Path, place: Path
) -> None:
    files = [RawFile(tmp_path / name) for name in ("one.bin", "other file#%.bin")]
    values = np.arange(60, dtype="<i4").reshape(6, 10)
    array = make_array(files, values, (2, 3), fill_value=-1, missing=[(0, 1), (2, 3)], inline=[(1, 1)])
    group = GroupNode(attributes={"title": "a group"})
    nodes = {"/a": group, "/a/b": group, "/a/b/x": array, "/scalar": make_array(files[0], np.float64(2.5))}
    text = np.array(["é", ""], object)
    nodes["/text"] = make_array(
        files[0], text, data_type="string", codecs=(UTF8,), encode=encode_text, fill_value="", inline=[(0,)]
    )
    hierarchy = make_hierarchy(files, nodes)
    write_icechunk(hierarchy, PROVENANCE, url_of(place))
    opened = open_snapshot(place)
    expected = values.copy()
    expected[0:2, 3:6] = expected[4:6, 9:] = -1
    np.testing.assert_array_equal(opened["a/b/x"][...], expected)
    assert opened["scalar"][...] == 2.5
    assert opened["text"][...].tolist() == ["é", ""]
    assert opened["a/b"].attrs["title"] == "a group"
    assert sorted(name for name, _ in opened.members(max_depth=None)) == ["a", "a/b", "a/b/x", "scalar", "text"]


@pytest.mark.parametrize("name", ["plain", "a b", "a%20b", "a%b", "a#b?c", "ü", "a[1]+{}", "a&b;c=d@e:f,g'h", "a\\b"])
def test_files_in_directories_with_any_name_are_read(name: str, tmp_path: Path, place: Path) -> None:
    for number, each in enumerate((name, "a b")):
        (tmp_path / each).mkdir(exist_ok=True)
        make_numbers(tmp_path / each / f"{each}.h5", np.arange(4000) + 1 - number)
    source = make_numbers(tmp_path / name / f"{name}.h5", np.arange(4000) + 7)
    translate(source, url_of(place))
    np.testing.assert_array_equal(open_snapshot(place)["x"][...], np.arange(4000) + 7)


def test_sparse_and_dense_grids_are_the_same_through_either_call(tmp_path: Path, place: Path) -> None:
    values = np.arange(2000.0)
    with h5py.File(tmp_path / "sparse.h5", "w") as file:
        sparse = file.create_dataset("sparse", (10_000, 10_000), "f8", chunks=(100, 100), fillvalue=-1)
        sparse[0, 0], sparse[9_999, 9_999], sparse[150, 9_000] = 1, 2, 3
        file.create_dataset("dense", data=values, chunks=(200,))
    translate(tmp_path / "sparse.h5", url_of(place))
    group = open_snapshot(place)
    np.testing.assert_array_equal(group["dense"][...], values)
    assert [group["sparse"][at] for at in ((0, 0), (9_999, 9_999), (150, 9_000), (5_000, 5_000))] == [1, 2, 3, -1]


def test_xarray_opens_a_repository_as_it_opens_other_references(tmp_path: Path, place: Path) -> None:
    sample = Path(__file__).parents[3] / "sample_data" / "ocean.nc"
    translate(sample, tmp_path / "ocean.json")
    translate(sample, url_of(place))
    store = open_repository(place).readonly_session("main").store
    options = {"fo": str(tmp_path / "ocean.json")}
    with (
        xr.open_dataset(store, engine="zarr") as ours,
        xr.open_dataset("reference://", engine="zarr", storage_options=options) as theirs,
    ):
        xr.testing.assert_identical(ours.load(), theirs.load())


def test_the_snapshot_records_its_sources(tmp_path: Path, place: Path) -> None:
    translation = translate(make_ocean(tmp_path / "ocean.nc"), url_of(place))
    (snapshot, *_) = open_repository(place).ancestry(branch="main")
    told = Provenance.from_json(snapshot.metadata["h5zarr"])
    assert told == replace(translation.provenance, problems=translation.problems)
    assert snapshot.message == f"h5zarr {h5zarr.__version__}: {tmp_path / 'ocean.nc'}"


def test_numbers_that_json_lacks_are_words_and_it_is_said(tmp_path: Path, place: Path) -> None:
    make_plain(tmp_path / "plain.h5")
    with h5py.File(tmp_path / "plain.h5", "a") as file:
        file["x"].attrs["range"] = [-np.inf, np.nan]
    (warning,) = translate(tmp_path / "plain.h5", url_of(place)).warnings
    assert (warning.path, "attribute range" in warning.message) == ("/x", True)
    assert open_snapshot(place)["x"].attrs["range"] == ["-Infinity", "NaN"]
    with pytest.warns(ProblemWarning, match="attribute range"):
        translate(tmp_path / "plain.h5").write(url_of(place))


# --- snapshots


def test_a_second_translation_is_a_second_snapshot_and_the_first_is_still_there(tmp_path: Path, place: Path) -> None:
    for name, message in (("one", "first"), ("two", "second")):
        source = make_numbers(tmp_path / f"{name}.h5", np.arange(4000) + len(message), name)
        translate(source, url_of(place), message=message, overwrite=True)
    newest, older, *_ = open_repository(place).ancestry(branch="main")
    assert messages(place) == ["second", "first"]
    assert list(open_snapshot(place)) == ["two"]
    assert list(open_snapshot(place, older.id)) == ["one"]
    np.testing.assert_array_equal(open_snapshot(place, newest.id)["two"][...], np.arange(4000) + 6)
    np.testing.assert_array_equal(open_snapshot(place, older.id)["one"][...], np.arange(4000) + 5)


def test_an_array_may_change_its_shape_from_one_snapshot_to_the_next(tmp_path: Path, place: Path) -> None:
    translate(make_numbers(tmp_path / "long.h5", np.arange(9000)), url_of(place))
    translate(make_numbers(tmp_path / "short.h5", np.arange(2000.0)), url_of(place), overwrite=True)
    np.testing.assert_array_equal(open_snapshot(place)["x"][...], np.arange(2000.0))


def test_another_branch_leaves_the_main_one_alone(tmp_path: Path, place: Path) -> None:
    source = make_plain(tmp_path / "plain.h5")
    assert main(["translate", str(source), url_of(place), "--quiet", "--message", "first"]) == 0
    arguments = ["translate", str(source), url_of(place), "--quiet", "--branch", "next", "--message", "other"]
    assert main(arguments) == 0
    assert (messages(place), messages(place, "next")) == (["first"], ["other"])
    np.testing.assert_array_equal(open_snapshot(place, branch="next")["x"][...], np.arange(4000))


def test_containers_that_are_there_stay_and_are_not_made_twice(tmp_path: Path, place: Path) -> None:
    (tmp_path / "below").mkdir()
    translate(make_plain(tmp_path / "plain.h5"), url_of(place))
    translate(make_plain(tmp_path / "below" / "plain.h5"), url_of(place), overwrite=True)
    assert list(open_repository(place).config.virtual_chunk_containers) == [f"file://{tmp_path}/"]
    with RangeServer({"/plain.h5": (tmp_path / "plain.h5").read_bytes()}) as server:
        if IS_FIRST:
            return
        translate(server.url("/plain.h5"), url_of(place), overwrite=True)
        assert set(open_repository(place).config.virtual_chunk_containers) == {f"file://{tmp_path}/", server.url("/")}


# --- sources that change


def test_a_source_that_has_changed_is_an_error_on_read(tmp_path: Path, place: Path) -> None:
    source = make_plain(tmp_path / "plain.h5")
    translate(source, url_of(place))
    np.testing.assert_array_equal(open_snapshot(place)["x"][...], np.arange(4000))
    later = source.stat().st_mtime + 10
    os.utime(source, (later, later))
    with pytest.raises(Exception, match="checksum"):
        open_snapshot(place)["x"][...]


def test_a_time_with_a_tiny_fraction_of_a_second_is_not_taken_for_a_change(tmp_path: Path, place: Path) -> None:
    source = make_plain(tmp_path / "plain.h5")
    os.utime(source, ns=(1_700_000_000_000_000_001, 1_700_000_000_000_000_001))
    translate(source, url_of(place))
    np.testing.assert_array_equal(open_snapshot(place)["x"][...], np.arange(4000))


def test_another_file_that_references_lead_to_is_not_compared_with_what_was_read(tmp_path: Path, place: Path) -> None:
    source, target = make_plain(tmp_path / "plain.h5"), tmp_path / "copy.h5"
    target.write_bytes(source.read_bytes())
    os.utime(target, (2_000_000_000, 2_000_000_000))
    translate(source, url_of(place), target_url=str(target))
    np.testing.assert_array_equal(open_snapshot(place)["x"][...], np.arange(4000))


# --- failures


def test_rejected_references_are_named_and_nothing_is_written(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make_numbers(tmp_path / "numbers.h5", np.arange(4000))
    monkeypatch.setattr(icechunk_writing, "lacking_prefixes", lambda prefixes, known: [])
    with pytest.raises(OutputError, match=r"/x: Icechunk rejects 4 references to .*numbers\.h5, .*chunk \(\d\)"):
        translate(source, url_of(place))
    assert not place.exists()
    assert os.listdir(tmp_path) == ["numbers.h5"]


@pytest.mark.parametrize("call", ["ReferenceSetter", "find_odd", "dump"])
def test_a_failure_leaves_the_repository_as_it_was(call: str, tmp_path: Path, place: Path, monkeypatch) -> None:
    source = make_numbers(tmp_path / "numbers.h5", np.arange(4000))
    translate(source, url_of(place), message="first")

    def fail(*arguments: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(icechunk_writing, call, fail)
    with pytest.raises((OutputError, MemoryError)):
        translate(source, url_of(place), branch="next")
    assert messages(place) == ["first"]
    assert open_repository(place).list_branches() == {"main"}
    np.testing.assert_array_equal(open_snapshot(place)["x"][...], np.arange(4000))


def test_a_failure_leaves_no_new_repository(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = make_plain(tmp_path / "plain.h5")
    place.mkdir()
    monkeypatch.setattr(virtual_refs, "_find_boxes", lambda *arguments: None)
    monkeypatch.setattr(virtual_refs, "_give_box", lambda *arguments: [(0,)])
    monkeypatch.setattr(virtual_refs, "_give_one_by_one", lambda *arguments: [(0,)])
    with pytest.raises(OutputError, match="rejects 1 reference"):
        translate(source, url_of(place))
    assert os.listdir(place) == []
    assert sorted(os.listdir(tmp_path)) == ["plain.h5", "repository"]


def test_the_second_writer_gets_an_error_and_changes_nothing(tmp_path: Path, place: Path, monkeypatch) -> None:
    source = make_plain(tmp_path / "plain.h5")
    translate(source, url_of(place), message="first")
    fill = icechunk_writing._Writer._set_metadata

    def fill_late(self: Any, store: Any) -> None:
        fill(self, store)
        monkeypatch.undo()
        translate(source, url_of(place), message="faster")

    monkeypatch.setattr(icechunk_writing._Writer, "_set_metadata", fill_late)
    with pytest.raises(OutputError, match="another writer has committed"):
        translate(source, url_of(place), message="slower")
    assert messages(place) == ["faster", "first"]


def test_what_icechunk_cannot_refer_to_is_refused_by_name(tmp_path: Path, place: Path) -> None:
    source = make_plain(tmp_path / "plain.h5")
    for target, why in (
        ("zip://plain.h5::s3://bucket/plain.zip", "chain of URLs"),
        ("ftp://host/plain.h5", "knows no container for ftp"),
        ("https://host/plain.h5?page=1", "after the question mark"),
        ("s3://bucket/plain.h5?versionId=abc", "after the question mark"),
        ("/plain\n.h5", "control character"),
        ("/odd#directory/plain.h5", "no parent directory"),
    ):
        with pytest.raises(OutputError, match=why):
            translate(source, url_of(place), target_url=target)
    assert not place.exists()


def test_a_whole_file_of_unknown_size_is_refused(tmp_path: Path, place: Path) -> None:
    file = RawFile(tmp_path / "one.bin")
    array = make_array(file, np.arange(3))
    manifest = replace(array.manifest, address=np.zeros(1, np.int64), nbytes=np.full(1, TO_THE_END))
    hierarchy = make_hierarchy(file, {"/x": replace(array, manifest=manifest)})
    with pytest.raises(OutputError, match="whole file"):
        write_icechunk(hierarchy, PROVENANCE, url_of(place))
    assert not place.exists()


def test_other_things_in_the_way_are_left_alone(tmp_path: Path, place: Path) -> None:
    source = make_plain(tmp_path / "plain.h5")
    place.mkdir()
    (place / "precious.txt").write_text("mine")
    for target in (url_of(place), url_of(source), url_of(tmp_path / "nowhere" / "repository")):
        with pytest.raises(OutputError):
            translate(source, target)
    assert os.listdir(place) == ["precious.txt"]
    np.testing.assert_array_equal(h5py.File(source)["x"][...], np.arange(4000))


KILLED = """
import os, signal, sys, threading
from h5zarr.containers.icechunk import icechunk_writing as writing
from h5zarr.containers.container import Commit
from h5zarr.commands.translate.translate import translate

translation = translate(sys.argv[1])
opened = writing.opened
def begin(*arguments):
    threading.Timer(float(sys.argv[3]), os.kill, (os.getpid(), signal.SIGKILL)).start()
    return opened(*arguments)
writing.opened = begin
translation.write(sys.argv[2], message="new", overwrite=True)
print("done", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("is_there", [True, False], ids=["old", "none"])
@pytest.mark.parametrize(
    "seconds", [0, 0.008, *(pytest.param(each, marks=pytest.mark.slow) for each in (0.004, 0.016))]
)
def test_who_is_killed_leaves_the_old_or_the_new(is_there: bool, seconds: float, tmp_path: Path, place: Path) -> None:
    old, new = (make_numbers(tmp_path / f"{number}.h5", np.arange(400_000) + number) for number in (0, 1))
    if is_there:
        translate(old, url_of(place), message="old")
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(new), url_of(place), str(seconds)], capture_output=True, text=True
    )
    assert done.returncode == -9
    if not is_there and not place.exists():
        assert "done" not in done.stdout
        return
    told = messages(place)
    assert told in ([["old"], ["new", "old"]] if is_there else [["new"]])
    assert told[0] == "new" or "done" not in done.stdout
    np.testing.assert_array_equal(open_snapshot(place)["x"][...], np.arange(400_000) + (told[0] == "new"))


# --- far away


def test_a_repository_on_s3_refers_to_files_on_s3_and_notices_when_they_change(tmp_path: Path, monkeypatch) -> None:
    content = make_plain(tmp_path / "plain.h5").read_bytes()
    with s3_server() as options:
        import s3fs

        buckets = s3fs.S3FileSystem(**options, skip_instance_cache=True)
        buckets.mkdir("sources")
        buckets.mkdir("results")
        source, out = "s3://sources/a b#%.h5", "icechunk+s3://results/deep/repository"
        buckets.pipe_file(source, content)
        choices: dict[str, Any] = {"storage_options": options, "output_options": {**options, "region": "us-east-1"}}
        with monkeypatch.context() as without_containers:
            without_containers.setattr(icechunk_writing, "lacking_prefixes", lambda prefixes, known: [])
            with pytest.raises(OutputError, match="rejects 1 reference"):
                translate(source, out, **choices)
        for message in ("first", "second"):
            translate(source, out, **choices, message=message)
        repository = open_on_s3(options)
        assert [one.message for one in repository.ancestry(branch="main")][:-1] == ["second", "first"]
        group = zarr.open_group(repository.readonly_session("main").store, mode="r")
        np.testing.assert_array_equal(group["x"][...], np.arange(4000))
        buckets.pipe_file(source, content[:-1] + b"!")
        with pytest.raises(Exception, match="checksum"):
            zarr.open_group(open_on_s3(options).readonly_session("main").store, mode="r")["x"][...]
        buckets.clear_instance_cache()


def open_on_s3(options: dict[str, Any]) -> Any:
    keys = {"access_key_id": options["key"], "secret_access_key": options["secret"]}
    storage = icechunk.s3_storage(
        bucket="results",
        prefix="deep/repository",
        endpoint_url=options["endpoint_url"],
        allow_http=True,
        force_path_style=True,
        region="us-east-1",
        **keys,
    )
    return open_repository(storage, icechunk.s3_credentials(**keys))


def test_files_on_a_web_server_are_referred_to_where_icechunk_can(tmp_path: Path, place: Path) -> None:
    with RangeServer({"/a b.h5": make_plain(tmp_path / "plain.h5").read_bytes()}) as server:
        if IS_FIRST:
            with pytest.raises(OutputError, match="rejects 1 reference") as caught:
                translate(server.url("/a b.h5"), url_of(place))
            assert "port" in caught.value.remedy
            assert not place.exists()
            return
        translate(server.url("/a b.h5"), url_of(place))
        np.testing.assert_array_equal(open_snapshot(place)["x"][...], np.arange(4000))
        assert server.counts.headers[-1]["if-unmodified-since"]


# --- the command line


def test_branches_and_messages_are_for_repositories_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = make_plain(tmp_path / "plain.h5")
    assert main(["translate", str(source), str(tmp_path / "out.json"), "--branch", "next"]) == 2
    assert "Omit --branch and --message" in capsys.readouterr().err
    assert main(["translate", str(source), url_of(tmp_path / "repository"), "--zarr-format", "2"]) == 2
    assert "Choose --zarr-format 3" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["plain.h5"]


def test_without_the_package_it_is_said_before_anything_is_read(
    tmp_path: Path, place: Path, monkeypatch, capsys
) -> None:
    monkeypatch.setitem(sys.modules, "icechunk", None)
    assert main(["translate", str(tmp_path / "nothing.h5"), url_of(place)]) == 2
    told = capsys.readouterr().err
    assert "needs the package icechunk, which is not installed" in told
    assert "pip install icechunk" in told

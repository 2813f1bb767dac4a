from __future__ import annotations

import gzip
import os
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped, unused-ignore]
import h5py
import numpy as np
import numpy.typing as npt
import pytest

import h5zarr
from h5zarr.commands.translate.translate import translate
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.source_state import SourceState
from h5zarr.errors import H5ZarrError, Problem, ProblemWarning, SourceChanged, SourceError, Unsupported
from h5zarr.io.access import Access
from h5zarr.io.source import Identity
from h5zarr.opening import Opened, open_hierarchy, recorded_identities
from h5zarr.read.decoding import find_decoder
from h5zarr.read.read_arrays import ArrayValues
from h5zarr.read.sources import Sources
from h5zarr.zarr_model.hierarchy import ArrayNode
from tests.containers.hierarchies import write_json_v3
from tests.servers import RangeServer

VALUES = np.arange(40 * 5000, dtype="<i4").reshape(40, 5000)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("opening") / "file.h5"
    with h5py.File(path, "w") as made:
        made.create_dataset("plain", data=VALUES)
        made.create_dataset("chunked", data=VALUES, chunks=(1, 5000), compression="gzip")
        made.create_dataset("group/text", data=["a", "bc"])
    return path


@pytest.fixture
def server(file: Path) -> Iterator[RangeServer]:
    with RangeServer({"/file.h5": file.read_bytes()}) as started:
        yield started


def read(opened: Opened, path: str) -> npt.NDArray[Any]:
    node = opened.hierarchy.nodes[path]
    decoder = find_decoder(node)  # type: ignore[arg-type]
    assert decoder is not None
    values = ArrayValues(path, node, decoder, opened.sources)  # type: ignore[arg-type]
    return values[(slice(None),) * len(values.shape)]


def check(opened: Opened) -> None:
    assert np.array_equal(read(opened, "/chunked"), VALUES)
    assert np.array_equal(read(opened, "/plain"), VALUES)
    assert read(opened, "/group/text").tolist() == ["a", "bc"]


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".json.zst", ".references", ""])
def test_references_open_whatever_they_are_called(file: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"refs{suffix}"
    kind = suffix if suffix.startswith(".json") else ".json"
    translate(file, tmp_path / f"named{kind}")
    os.rename(tmp_path / f"named{kind}", out)
    check(open_hierarchy(out))
    check(pickle.loads(pickle.dumps(open_hierarchy(str(out)))))


def test_references_with_version_2_metadata_open(file: Path, tmp_path: Path) -> None:
    translate(file, tmp_path / "refs.json", zarr_format=2)
    check(open_hierarchy(tmp_path / "refs.json"))


def test_a_file_opens_without_references(file: Path) -> None:
    check(open_hierarchy(file))
    check(open_hierarchy(f"file://{file}"))


def test_a_relative_path_means_the_file_that_was_opened(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    opened = open_hierarchy(file.name)
    monkeypatch.chdir(tmp_path)
    check(opened)


def test_a_small_remote_file_is_read_once(server: RangeServer) -> None:
    check(open_hierarchy(server.url("/file.h5")))
    assert server.counts.heads == 0
    assert sum(last - first + 1 for first, last in server.counts.gets) == len(server.files["/file.h5"])


def test_what_was_read_of_a_small_file_is_not_sent_along(server: RangeServer, file: Path) -> None:
    sent = pickle.dumps(open_hierarchy(server.url("/file.h5")))
    assert len(sent) < file.stat().st_size / 2
    check(pickle.loads(sent))


def test_remote_references_take_one_request_and_chunks_few(server: RangeServer, file: Path, tmp_path: Path) -> None:
    translate(file, tmp_path / "refs.json", target_url=server.url("/file.h5"))
    server.files["/refs.json"] = (tmp_path / "refs.json").read_bytes()
    opened = open_hierarchy(server.url("/refs.json"))
    assert (server.counts.heads, len(server.counts.gets)) == (0, 1)
    assert np.array_equal(read(opened, "/chunked"), VALUES)
    assert (server.counts.heads, len(server.counts.gets)) == (0, 2)


def test_compressed_remote_references_open(server: RangeServer, file: Path, tmp_path: Path) -> None:
    translate(file, tmp_path / "refs.json")
    server.files["/refs.json.gz"] = gzip.compress((tmp_path / "refs.json").read_bytes())
    check(open_hierarchy(server.url("/refs.json.gz"), Access(allow=(str(file.parent),))))


def test_references_may_point_to_files_by_several_protocols(server: RangeServer, file: Path, tmp_path: Path) -> None:
    fsspec.filesystem("memory").pipe_file("/opening/copy.h5", file.read_bytes())
    opened = open_hierarchy(file)
    urls = (str(file), server.url("/file.h5"), "memory://opening/copy.h5")
    node = opened.hierarchy.nodes["/chunked"]
    assert isinstance(node, ArrayNode)
    in_turn = (np.arange(node.manifest.count) % 3).astype(np.int32)
    mixed = replace(node, manifest=replace(node.manifest, source=in_turn))
    hierarchy = replace(opened.hierarchy, nodes={**opened.hierarchy.nodes, "/chunked": mixed}, urls=urls)
    translation = translate(file)
    with (tmp_path / "refs.json").open("wb") as out:
        write_json_v3(hierarchy, translation.provenance, out)
    assert np.array_equal(read(open_hierarchy(tmp_path / "refs.json"), "/chunked"), VALUES)
    assert len(server.counts.gets) >= 1
    fsspec.filesystem("memory").store.clear()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has 0 bytes|not an HDF5|nothing"),
        (b"hello, world", "refs.json"),
        (b'{"refs": ', "refs.json"),
        (b"{}", "refs.json"),
        (b"\x1f\x8bjunk", "refs.json"),
    ],
)
def test_unknown_input_is_an_error_that_names_it(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "refs.json").write_bytes(content)
    with pytest.raises(H5ZarrError, match=message):
        open_hierarchy(tmp_path / "refs.json")


def test_a_missing_file_is_a_source_error(tmp_path: Path, server: RangeServer) -> None:
    for url in (tmp_path / "no.json", server.url("/no.json"), server.url("/no.h5")):
        with pytest.raises(SourceError, match="there is no such file"):
            open_hierarchy(url)


# --- sources that change


def test_a_local_source_that_changed_is_noticed_unless_told_not_to(file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.h5"
    copy.write_bytes(file.read_bytes())
    translate(copy, tmp_path / "refs.json")
    check(open_hierarchy(tmp_path / "refs.json"))
    os.utime(copy, (1, 1))
    opened = open_hierarchy(tmp_path / "refs.json")
    with pytest.raises(SourceChanged, match="has changed since it was translated"):
        read(opened, "/chunked")
    check(open_hierarchy(tmp_path / "refs.json", verify=False))


def test_a_changed_remote_source_is_noticed(server: RangeServer, tmp_path: Path) -> None:
    translate(server.url("/file.h5"), tmp_path / "refs.json")
    check(open_hierarchy(tmp_path / "refs.json"))
    server.etag = '"2"'
    with pytest.raises(SourceChanged, match="ETag"):
        read(open_hierarchy(tmp_path / "refs.json"), "/chunked")
    check(open_hierarchy(tmp_path / "refs.json", verify=False))


def test_a_file_that_was_translated_elsewhere_is_known_by_its_size_alone() -> None:
    identity = Identity(nbytes=7, etag='"x"', mtime="2001-01-01T00:00:00Z")
    provenance = Provenance("0", (SourceState("/here/a.h5", identity), SourceState("s3://b/c.h5", identity)))
    found = recorded_identities(("https://there/a.h5", "s3://b/c.h5"), provenance)
    assert found == (Identity(nbytes=7), identity)
    assert recorded_identities(("a", "b"), None) == (None, None)


# --- options for file systems


def test_options_are_for_all_files_or_by_protocol() -> None:
    plain = {"anon": True, "client_kwargs": {"region": "x"}}
    assert Access(storage_options=plain).options_for("s3://b/k") == plain
    assert Access(storage_options={"client_kwargs": {"region": "x"}}).options_for("s3://b/k") == {
        "client_kwargs": {"region": "x"}
    }
    both = {"s3": {"anon": True}, "https": {"headers": {}}}
    assert Access(storage_options=both).options_for("s3://b/k") == {"anon": True}
    assert Access(storage_options=both).options_for("https://h/p") == {"headers": {}}
    assert Access(storage_options=both).options_for("gs://b/k") == {}
    assert Access(storage_options=both).options_for("/local/path") == {}
    assert Access(storage_options=both).options_for("simplecache::s3://b/k") == {"s3": {"anon": True}}
    assert Access(storage_options=both).options_for("zip://a.h5::https://h/p.zip") == {"https": {"headers": {}}}


def test_references_that_name_no_file_say_so() -> None:
    with pytest.raises(SourceError, match="do not say which file"):
        Sources(urls=("",)).reader(0)


# --- warnings


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"storage_options": "anon"}, "storage_options must be a dict"),
        ({"network": "fast"}, "network must be a dict, not str"),
        ({"limits": 5}, "limits must be a dict, not int"),
        ({"allow": "/data"}, "allow must be a list"),
    ],
)
def test_options_of_a_wrong_type_are_named(file: Path, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        h5zarr.open_store(file, **wrong)


def test_the_url_for_zarr_is_refused_with_the_right_one() -> None:
    with pytest.raises(Unsupported, match=r"^reference://: ") as caught:
        open_hierarchy("reference://", Access(storage_options={"fo": "ocean.json"}))
    assert '"fo"' in caught.value.remedy


def test_omissions_cause_warnings_except_for_secrets_that_are_used(file: Path) -> None:
    opened = open_hierarchy(file)
    left_out, secret = Problem("/x", "malformed", "it is broken", "Mend it."), Problem("/", "secret", "it is kept")
    opened = replace(opened, hierarchy=replace(opened.hierarchy, problems=(left_out,), warnings=(secret,)))
    with pytest.warns(ProblemWarning) as caught:
        opened.warn()
    assert [str(one.message) for one in caught] == [f"{file}:/x: it is broken. Mend it."]


def test_relative_paths_of_others_are_taken_from_where_references_are_opened(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translate(file, tmp_path / "refs.json")
    text = (tmp_path / "refs.json").read_text().replace(str(file), file.name)
    (tmp_path / "relative.json").write_text(text)
    monkeypatch.chdir(file.parent)
    opened = open_hierarchy(tmp_path / "relative.json", verify=False)
    monkeypatch.chdir(tmp_path)
    check(opened)
    check(pickle.loads(pickle.dumps(opened)))

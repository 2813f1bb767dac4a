"""Files with odd names, near and far: every way to read them gives the values of that very file, or says why not.

All names stand side by side, and so do the names that a wrong reading would make of them: each file has its own values.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import fsspec
import h5py
import numpy as np
import pytest
import xarray
import zarr

from h5zarr.cli import main
from h5zarr.commands.translate.translate import translate
from h5zarr.commands.translate.translation import Translation
from h5zarr.errors import H5ZarrError, SourceChanged
from h5zarr.io.urls import UnclearURL
from h5zarr.store import open_store
from tests.s3 import s3_server
from tests.servers import RangeServer

pytest.importorskip("s3fs")
pytest.importorskip("moto.server")
pytestmark = [
    pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

NAMES = (
    "a b.h5", " lead.h5", "trail.h5 ", "50%.h5", "a%20b.h5", "a%2520b.h5", "a#b.h5", "a?b.h5", "a?version=2.h5",
    "a+b.h5", "a&b=c;d,e.h5", "é.h5", "e\u0301.h5", "日本.h5", "{x}.h5", "{{.h5", "}}.h5", "{{x}}.h5", "{% x %}.h5",
    "it's \"q\"`.h5", "back\\slash.h5", "a::b.h5", "me@host.h5", "a:b.h5", "*.h5", "[1].h5", "~a.h5", "<a|b^c>.h5",
    "tab\tline\n.h5", "$HOME.h5", "(a)!.h5", "-a.h5", "..h5", 240 * "n" + ".h5",
)  # fmt: skip
DECOYS = ("a", "b.h5", "host.h5", "x.h5", "{.h5", "}.h5", "b", "50", "a%2B.h5", "trail.h5", "lead.h5", "tabline.h5")
IN_BUCKET = tuple(name for name in NAMES if "\n" not in name)  # which the server here cannot keep
NOTHING = 0


def values_of(name: str) -> Any:
    return np.arange(6) + 100 * [*NAMES, *DECOYS].index(name)


def write_file(path: Path, values: Any) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=values, chunks=(3,))
    return path


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way to a file. `reading` are the options with which others open references to it; None if they cannot.

    `told` is what the user is told of the URL: a part of the message or of the remedy.
    """

    url: str
    options: Mapping[str, Any] = field(default_factory=dict)
    reading: Mapping[str, Any] | None = field(default_factory=dict)
    told: str = ""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with all files, and beside it a ZIP archive of them."""
    made = tmp_path_factory.mktemp("odd") / "files"
    made.mkdir()
    for name in (*NAMES, *DECOYS):
        write_file(made / name, values_of(name))
    with zipfile.ZipFile(made.parent / "all files.zip", "w") as archive:
        for name in (*NAMES, *DECOYS):
            archive.write(made / name, name)
    return made


@pytest.fixture(scope="session")
def server(folder: Path) -> Iterator[RangeServer]:
    with RangeServer({f"/d/{path.name}": path.read_bytes() for path in folder.iterdir()}) as started:
        yield started


@pytest.fixture(scope="session")
def s3(folder: Path) -> Iterator[dict[str, Any]]:
    with s3_server() as options:
        filesystem = fsspec.filesystem("s3", **options)
        filesystem.mkdir("odd-urls")
        for name in (*IN_BUCKET, *DECOYS):
            filesystem.pipe_file(f"odd-urls/d/{name}", (folder / name).read_bytes())
        yield options


@pytest.fixture(scope="module")
def memory(folder: Path) -> Iterator[None]:
    filesystem = fsspec.filesystem("memory")
    for path in folder.iterdir():
        filesystem.pipe_file(f"memory://{path.name}", path.read_bytes())
    yield
    filesystem.store.clear()


def check(way: Way, expected: Any, tmp_path: Path, *, with_xarray: bool = True) -> Translation:
    """Translate a file, and compare what all readers show; return the translation."""
    made = translate(way.url, tmp_path / "3.json", storage_options=way.options, inline_bytes=NOTHING)
    translate(way.url, tmp_path / "2.json", storage_options=way.options, inline_bytes=NOTHING, zarr_format=2)
    assert [one.kind for one in (*made.problems, *made.warnings)] == (["url"] if way.told else [])
    assert all(way.told in f"{one.message} {one.remedy}" for one in (*made.problems, *made.warnings))
    for number in (3, 2):
        references = str(tmp_path / f"{number}.json")
        store = open_store(references, storage_options=way.options)
        np.testing.assert_array_equal(zarr.open_group(store, mode="r")["v"][:], expected)
        if way.reading is not None:
            options = {"fo": references, "skip_instance_cache": True, **way.reading}
            group = zarr.open_group("reference://", storage_options=options, mode="r", zarr_format=number)
            np.testing.assert_array_equal(group["v"][:], expected)
    for url in (references, way.url) if with_xarray else (way.url,):
        with xarray.open_dataset(url, engine="h5zarr", storage_options=way.options) as dataset:
            np.testing.assert_array_equal(dataset.v.values, expected)
    return made


FAR = {"remote_options": {"asynchronous": True}}


@pytest.mark.parametrize("name", NAMES)
def test_a_path_is_read_as_it_is_written(folder: Path, name: str, tmp_path: Path) -> None:
    made = check(Way(url=str(folder / name)), values_of(name), tmp_path)
    assert made.hierarchy.urls == (str(folder / name),)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_url_is_read_as_it_is_written_or_escaped_and_never_as_both(
    folder: Path, name: str, tmp_path: Path
) -> None:
    for url in (f"file://{folder}/{name}", (folder / name).as_uri()):
        other = Path(url.removeprefix("file://"))
        if (other.name != name and other.exists()) or (name in ("a%20b.h5", "a%2520b.h5") and other.name == name):
            with pytest.raises(UnclearURL, match="another one has this name with percent escapes decoded") as caught:
                translate(url)
            assert caught.value.remedy
            continue
        made = translate(url, tmp_path / "refs.json", inline_bytes=NOTHING)
        assert made.hierarchy.urls == (str(folder / name),)
        with xarray.open_dataset(url, engine="h5zarr") as dataset:
            np.testing.assert_array_equal(dataset.v.values, values_of(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_file_on_a_web_server(server: RangeServer, name: str, tmp_path: Path) -> None:
    escaped = server.url(f"/d/{quote(name)}")
    check(Way(url=escaped, reading=FAR, told='"encoded": True' if ";" in name else ""), values_of(name), tmp_path)


@pytest.mark.parametrize("name", [name for name in NAMES if not set("#?") & set(name) and "%2" not in name])
def test_illegal_characters_in_urls_are_escaped(server: RangeServer, name: str, tmp_path: Path) -> None:
    made = check(Way(url=server.url(f"/d/{name}"), reading=FAR), values_of(name), tmp_path, with_xarray=False)
    (url,) = made.hierarchy.urls
    assert url.isascii()
    assert not set(' {}<>[]|^`"\\\n') & set(url)


def test_a_fragment_is_refused(server: RangeServer) -> None:
    """The server would be asked for "a", and that is there."""
    for read in (translate, open_store):
        with pytest.raises(UnclearURL, match=r"/d/a#b\.h5: the URL contains a \"#\"") as caught:
            read(server.url("/d/a#b.h5"))
        assert "%23" in caught.value.remedy
    with pytest.raises(UnclearURL, match="#"):
        translate(server.url("/d/b.h5"), target_url="https://host/a#b.h5")


@pytest.mark.parametrize("name", IN_BUCKET)
def test_an_object_in_a_bucket(s3: dict[str, Any], name: str, tmp_path: Path) -> None:
    reading = {"remote_options": {"asynchronous": True, **s3}}
    check(Way(url=f"s3://odd-urls/d/{name}", options=s3, reading=reading), values_of(name), tmp_path, with_xarray=False)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_in_memory(memory: None, name: str, tmp_path: Path) -> None:
    check(Way(url=f"memory://{name}"), values_of(name), tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_in_an_archive(folder: Path, name: str, tmp_path: Path) -> None:
    archive = folder.parent / "all files.zip"
    way = Way(url=f"zip://{name}::{archive}", reading=None, told="chain")
    if "::" in name:
        with pytest.raises(UnclearURL, match="::"):
            translate(way.url)
        return
    made = check(way, values_of(name), tmp_path)
    assert made.hierarchy.urls == (way.url,)


@pytest.mark.parametrize("name", NAMES)
def test_a_cache_before_a_url_changes_nothing(server: RangeServer, name: str, tmp_path: Path) -> None:
    url = server.url(f"/d/{quote(name)}")
    made = translate(f"simplecache::{url}", inline_bytes=NOTHING)
    assert made.hierarchy.urls == (url,)
    with xarray.open_dataset(f"simplecache::{url}", engine="h5zarr") as dataset:
        np.testing.assert_array_equal(dataset.v.values, values_of(name))


# --- queries and versions


EXACT = (
    "/a?version=2&x=%23", "/a?version=2&x=%2F", "/a?x=1+2", "/a?x=1%2B2", "/a?x=1%202", "/a?x=%C3%A9", "/a?x=%c3%a9",
    "/a?sign=A%2Fb%3D%3D", "/a?x=a?b", "/a?{{x}}".replace("{", "%7B").replace("}", "%7D"), "/%61", "/a%2Fb", "/a%3Bb",
    "/a//b", "/a?x=1;y=2", "/a?x='(1)'", "/a%41?x=%41",
)  # fmt: skip


def test_an_escaped_url_reaches_the_server_letter_by_letter(folder: Path, tmp_path: Path) -> None:
    contents = {url: (folder / name).read_bytes() for url, name in zip(EXACT, NAMES, strict=False)}
    with RangeServer(contents, is_literal=True) as server:
        for path, name in zip(EXACT, NAMES, strict=False):
            url, references = server.url(path), tmp_path / "refs.json"
            made = translate(url, references, inline_bytes=NOTHING)
            assert made.hierarchy.urls == (url,)
            for place in (references, url, f"simplecache::{url}"):
                with xarray.open_dataset(str(place), engine="h5zarr") as dataset:
                    np.testing.assert_array_equal(dataset.v.values, values_of(name))
            warned = bool(made.warnings)
            remote = {"asynchronous": True, **({"encoded": True} if warned else {})}
            options = {"fo": str(references), "remote_options": remote, "skip_instance_cache": True}
            group = zarr.open_group("reference://", storage_options=options, mode="r")
            if path not in ("/%61", "/a%41?x=%41", "/a?x=%c3%a9"):  # which are the same to every server
                np.testing.assert_array_equal(group["v"][:], values_of(name))
            assert warned == (path in ("/a?version=2&x=%2F", "/a?sign=A%2Fb%3D%3D", "/a%3Bb"))


def test_a_raw_query_is_escaped_and_kept(folder: Path) -> None:
    contents = {"/a?x=a%20b%22&y=%C3%A9%25": (folder / "b.h5").read_bytes()}
    with RangeServer(contents, is_literal=True) as server:
        made = translate(server.url('/a?x=a b"&y=é%'))
        assert made.hierarchy.urls == (server.url("/a?x=a%20b%22&y=%C3%A9%25"),)


@pytest.mark.parametrize("name", ["a#b.h5", "a?b%20{{x}}.h5"])
def test_a_version_of_an_object_is_read_and_other_readers_get_a_remedy(
    s3: dict[str, Any], folder: Path, name: str, tmp_path: Path
) -> None:
    filesystem = fsspec.filesystem("s3", version_aware=True, **s3)
    if not filesystem.exists("odd-versions"):
        filesystem.mkdir("odd-versions")
        filesystem.make_bucket_versioned("odd-versions")
    versions = []
    for content in ("a b.h5", "b.h5"):
        filesystem.pipe_file(f"odd-versions/{name}", (folder / content).read_bytes())
        versions.append(filesystem.object_version_info(f"odd-versions/{name}")[0]["VersionId"])
    url = f"s3://odd-versions/{name}?versionId={versions[0]}"
    reading = {"remote_options": {"asynchronous": True, "version_aware": True, **s3}}
    way = Way(url=url, options=s3, reading=reading, told='"version_aware": True')
    made = check(way, values_of("a b.h5"), tmp_path)
    assert made.hierarchy.urls == (url,)
    newest = {"fo": str(tmp_path / "3.json"), "remote_options": {"asynchronous": True, **s3}}
    with_newest = zarr.open_group("reference://", storage_options=newest, mode="r")["v"][:]
    np.testing.assert_array_equal(with_newest, values_of("b.h5"))  # therefore h5zarr warns


# --- names of the references


@pytest.mark.parametrize("name", [name for name in NAMES if "::" not in name])
def test_references_may_have_odd_names(folder: Path, name: str, tmp_path: Path) -> None:
    """Next to them are files with decoded escapes in their names, and without the part after "?" and "#"."""
    references = tmp_path / f"{name.replace('.h5', '')}.json"[-100:]
    translate(folder / "b.h5", references, inline_bytes=NOTHING)
    assert [path.name for path in tmp_path.iterdir()] == [references.name]
    for place in (str(references), f"file://{references}", references.as_uri()):
        with xarray.open_dataset(place, engine="h5zarr") as dataset:
            np.testing.assert_array_equal(dataset.v.values, values_of("b.h5"))
    group = zarr.open_group("reference://", storage_options={"fo": str(references)}, mode="r")
    np.testing.assert_array_equal(group["v"][:], values_of("b.h5"))


def test_references_on_a_server_and_in_a_bucket_may_have_odd_names(
    folder: Path, s3: dict[str, Any], tmp_path: Path
) -> None:
    translate(folder / "b.h5", tmp_path / "refs.json", inline_bytes=NOTHING)
    names = [f"{name.replace('.h5', '')}.json" for name in IN_BUCKET]
    files = {f"/{name}": (tmp_path / "refs.json").read_bytes() for name in names}
    with RangeServer(files) as server:
        for name in names:
            store = open_store(server.url(f"/{quote(name)}"), allow=[str(folder)])
            np.testing.assert_array_equal(zarr.open_group(store, mode="r")["v"][:], values_of("b.h5"))
    for name in names:
        url = f"s3://odd-urls/refs/{name}"
        if "::" in name:
            with pytest.raises(H5ZarrError, match="::"):
                translate(folder / "b.h5", url, output_options=s3)
            continue
        translate(folder / "b.h5", url, output_options=s3, inline_bytes=NOTHING)
        store = open_store(url, storage_options={"s3": s3, "file": {}}, allow=[str(folder)])
        np.testing.assert_array_equal(zarr.open_group(store, mode="r")["v"][:], values_of("b.h5"))


def test_a_name_that_is_not_unicode_is_read_and_written(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9.h5")
    path.write_bytes((folder / "b.h5").read_bytes())
    for url in (str(path), path.as_uri()):
        check(Way(url=url), values_of("b.h5"), tmp_path)
    translate(path, tmp_path / os.fsdecode(b"caf\xe9.json"))
    with xarray.open_dataset(tmp_path / os.fsdecode(b"caf\xe9.json"), engine="h5zarr") as dataset:
        np.testing.assert_array_equal(dataset.v.values, values_of("b.h5"))


def test_a_file_behind_a_query_that_was_replaced_is_noticed(folder: Path, tmp_path: Path) -> None:
    content = (folder / "b.h5").read_bytes()
    with RangeServer({"/get": content}) as server:
        translate(server.url("/get?file=1"), tmp_path / "refs.json", inline_bytes=NOTHING)
        server.etag = '"another"'
        store = open_store(tmp_path / "refs.json")
        with pytest.raises(SourceChanged, match="ETag"):
            zarr.open_group(store, mode="r")["v"][:]


def test_a_url_that_is_too_long_is_refused_with_a_remedy(server: RangeServer, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(H5ZarrError, match="HTTP 400") as caught:
        translate(server.url("/" + 9000 * "n"))
    assert "too long" in caught.value.remedy
    for name in (tmp_path / (5000 * "n"), f"file://{tmp_path}/a%00b", f"{tmp_path}/a\0b"):
        with pytest.raises(H5ZarrError):
            translate(name)
        with pytest.raises(H5ZarrError):
            translate(folder / "b.h5", name)


@pytest.mark.parametrize("name", ["a::b.json", "sub::dir/b.json", "sub/a::b.json.gz"])
def test_references_are_not_written_where_others_look_for_a_chain(folder: Path, name: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub::dir").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(H5ZarrError, match="chain") as caught:
        translate(folder / "b.h5", tmp_path / name)
    assert "another name" in caught.value.remedy
    assert sorted(tmp_path.rglob("*")) == before


def test_a_question_mark_in_the_name_of_the_output_does_not_hide_its_suffix(folder: Path, tmp_path: Path) -> None:
    translate(folder / "b.h5", tmp_path / "a?b.json.gz")
    assert (tmp_path / "a?b.json.gz").read_bytes()[:2] == b"\x1f\x8b"


@pytest.mark.parametrize("name", ["a b.h5", "{{x}}.h5", "a#b.h5", "me@host.h5", "é.h5", "tab\tline\n.h5"])
def test_the_command_takes_odd_names(server: RangeServer, folder: Path, name: str, tmp_path: Path) -> None:
    for url in (str(folder / name), server.url(f"/d/{quote(name)}")):
        out = tmp_path / f"{len(url)} {{{{x}}}}.json"
        assert main(["translate", url, str(out), "--inline-bytes", "0"]) == 0
        assert json.loads(out.read_bytes())["refs"]["v/c/0"][0] == url
        assert main(["inspect", url]) == 0


def test_the_command_says_what_to_do_about_a_fragment(
    server: RangeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["translate", server.url("/d/a#b.h5"), str(tmp_path / "refs.json")]) == 2
    said = capsys.readouterr().err
    assert "/d/a#b.h5: the URL contains a" in said
    assert "write %23" in said
    assert not list(tmp_path.iterdir())

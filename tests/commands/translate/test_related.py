"""Files that a file refers to: found where the library finds them, never on another machine, and each only once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from h5zarr.commands.translate import related as room
from h5zarr.commands.translate.related import find_related
from h5zarr.commands.translate.translate import translate
from h5zarr.errors import SourceError
from h5zarr.formats import scan_source
from h5zarr.hdf5.model import H5File
from h5zarr.io.location import NotBeside, local_candidates, raw_candidates, sibling_reference, sibling_url
from h5zarr.io.source import open_source
from h5zarr.limits import Limits
from h5zarr.netcdf4.names import interpret_names
from tests.collections_of_files import SHARED
from tests.netcdf4.shown import opened, show
from tests.servers import Faults, RangeServer


def write_links(path: Path, **links: tuple[str, str]) -> Path:
    path.parent.mkdir(exist_ok=True)
    with h5py.File(path, "w") as file:
        for name, (other, target) in links.items():
            file[name] = h5py.ExternalLink(other, target)
    return path


def write_values(path: Path, **values: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    with h5py.File(path, "w") as file:
        for name, value in values.items():
            file[name] = value
    return path


def write_virtual(path: Path, names: list[str]) -> Path:
    layout = h5py.VirtualLayout((len(names), 2), "i8")
    for number, name in enumerate(names):
        layout[number] = h5py.VirtualSource(name, "a", (2,))
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("x", layout, fillvalue=-1)
    return path


# --- where files are looked for


def test_a_relative_name_is_looked_for_beside_the_file_then_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    file = str(tmp_path / "data" / "file.h5")
    assert local_candidates(file, "sub/../o.h5") == [str(tmp_path / "data" / "o.h5"), str(tmp_path / "o.h5")]
    assert local_candidates("data/file.h5", "../o.h5")[0] == str(tmp_path / "o.h5")
    assert raw_candidates(file, "o.raw") == [str(tmp_path / "data" / "o.raw"), str(tmp_path / "o.raw")]


def test_of_an_absolute_name_the_last_part_is_looked_for_too_but_not_for_raw_files(tmp_path: Path) -> None:
    file = str(tmp_path / "file.h5")
    assert local_candidates(file, "/far/away/o.h5")[:2] == ["/far/away/o.h5", str(tmp_path / "o.h5")]
    assert raw_candidates(file, "/far/away/o.raw") == ["/far/away/o.raw"]


def test_the_library_looks_in_the_same_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("data", "work", "real"):
        (tmp_path / place).mkdir()
    monkeypatch.chdir(tmp_path / "work")
    path = tmp_path / "real" / "links.h5"
    write_links(path, a=("a.h5", "v"), b=("/no/where/b.h5", "v"), c=("c.h5", "v"), d=("d.h5", "v"), e=("../e.h5", "v"))
    (tmp_path / "data" / "links.h5").symlink_to(path)
    for name in ("data/a.h5", "data/b.h5", "work/a.h5", "work/c.h5", "real/d.h5", "real/a.h5", "e.h5"):
        write_values(tmp_path / name, v=name)
    with (
        opened(tmp_path / "data" / "links.h5", allow=[str(tmp_path)]) as related,
        h5py.File(tmp_path / "data" / "links.h5") as file,
    ):
        found = {name: os.path.relpath(other.url, tmp_path) for (_, name), other in related.links.items()}
        expected = {link: file[link][()].decode() for link in file}
    assert {Path(name).stem: place for name, place in found.items()} == expected
    assert set(expected.values()) == {"data/a.h5", "data/b.h5", "work/c.h5", "real/d.h5", "e.h5"}


@pytest.mark.parametrize(
    ("url", "name", "expected"),
    [
        ("https://host/a/b.h5", "c.h5", "https://host/a/c.h5"),
        ("https://host/a/b.h5?token=1", "sub/c.h5", "https://host/a/sub/c.h5?token=1"),
        ("https://host/a/b.h5", "../c d#.h5", "https://host/c%20d%23.h5"),
        ("s3://bucket/a/b.h5", "./x/../c d.h5", "s3://bucket/a/c d.h5"),
        ("s3://bucket/b.h5", "/etc/passwd", "s3://bucket/passwd"),
        ("simplecache::s3://bucket/a/b.h5", "c.h5", "simplecache::s3://bucket/a/c.h5"),
        ("zip://in/b.h5::https://host/a.zip", "c.h5", "zip://in/c.h5::https://host/a.zip"),
        ("zip://in/b.h5::https://host/a.zip", "../c.h5", "zip://c.h5::https://host/a.zip"),
        ("zip://b.h5::https://host/a.zip", "c d.h5", "zip://c d.h5::https://host/a.zip"),
        ("memory://b.h5", "c.h5", "memory://c.h5"),
        ("memory:///a/b.h5", "c.h5", "memory:///a/c.h5"),
        ("s3://bucket//a//b.h5", "c.h5", "s3://bucket//a//c.h5"),
        ("s3://bucket/a?x=1/b.h5", "c?.h5", "s3://bucket/a?x=1/c?.h5"),
        ("s3://bucket/a/b.h5?versionId=7", "c.h5", "s3://bucket/a/c.h5"),
        ("s3://bucket/a::b/b.h5", "c.h5", "s3://bucket/a::b/c.h5"),
        ("https://host/a%20%23/b.h5", "{{x}} 5%.h5", "https://host/a%20%23/%7B%7Bx%7D%7D%205%25.h5"),
    ],
)
def test_a_remote_file_has_remote_siblings(url: str, name: str, expected: str) -> None:
    assert sibling_url(url, name) == expected


@pytest.mark.parametrize(
    "name",
    [
        *("../../c.h5", "file:///etc/passwd", "http://elsewhere/c.h5", "x::file:///etc/passwd", "C:\\c.h5", "c:x", ""),
        "c.h5?versionId=7",
    ],
)
def test_a_remote_file_does_not_lead_elsewhere(name: str) -> None:
    with pytest.raises(NotBeside):
        sibling_url("s3://bucket/a/b.h5", name)


def test_references_keep_the_position_of_files_to_each_other(tmp_path: Path) -> None:
    file, other = str(tmp_path / "a" / "f.h5"), str(tmp_path / "b" / "o.h5")
    assert sibling_reference(file, file, other, "../b/o.h5") == other
    assert sibling_reference(file, "s3://bucket/x/f.h5", other, "../b/o.h5") == "s3://bucket/b/o.h5"
    assert sibling_reference(file, "/data/x/f.h5", other, "../b/o.h5") == "/data/b/o.h5"


# --- what is found


def test_files_that_links_lead_on_to_are_found_by_names_relative_to_each(tmp_path: Path) -> None:
    write_links(tmp_path / "main.h5", on=("sub/one.h5", "/g"))
    with h5py.File(write_links(tmp_path / "sub" / "one.h5"), "a") as file:
        file["g/on"] = h5py.ExternalLink("two.h5", "/v")
    write_values(tmp_path / "sub" / "two.h5", v=2)
    write_values(tmp_path / "two.h5", v=1)
    with opened(tmp_path / "main.h5") as related:
        naming = interpret_names(related.file, related.links)
        (found,) = naming.variables()
        assert (found.path, related.urls[related.number_of(found.file)]) == ("/on/on", str(tmp_path / "sub" / "two.h5"))
        assert not naming.problems


def test_files_that_refer_to_each_other_are_opened_once(tmp_path: Path) -> None:
    write_links(tmp_path / "a.h5", b=("b.h5", "/"), again=("./b.h5", "/"), self=("a.h5", "/"))
    write_links(tmp_path / "b.h5", a=("a.h5", "/"))
    with opened(tmp_path / "a.h5") as related:
        assert related.urls == (str(tmp_path / "a.h5"), str(tmp_path / "b.h5"))


def test_a_file_that_is_not_there_is_none_and_a_broken_one_an_error(tmp_path: Path) -> None:
    path = write_links(tmp_path / "a.h5", none=("none.h5", "/"), broken=("broken.h5", "/"))
    (tmp_path / "broken.h5").write_bytes(b"no HDF5 file")
    with opened(path) as related:
        assert not any(isinstance(one, H5File) for one in related.links.values())
        assert related.find(related.file, "none.h5") is None
        with pytest.raises(SourceError, match=r"broken\.h5"):
            related.find(related.file, "broken.h5")
        assert [one.kind for one in interpret_names(related.file, related.links).problems] == ["source"] * 2


def test_too_many_files_are_refused_and_not_missing(tmp_path: Path) -> None:
    for number in range(5):
        write_values(tmp_path / f"s{number}.h5", a=np.arange(2))
    with opened(
        write_virtual(tmp_path / "v.h5", [f"s{number}.h5" for number in range(5)]), limits=Limits(file_count=3)
    ) as related:
        assert len(related.members) == 3
        with pytest.raises(SourceError, match=r"'s2\.h5' was not opened: this file refers to too many others, or"):
            show(related)


def test_sources_are_closed_and_opened_again_when_there_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_MOST_OPEN", 2)
    for number in range(5):
        write_values(tmp_path / f"s{number}.h5", a=np.arange(2) + number)
    with opened(write_virtual(tmp_path / "v.h5", [f"s{number}.h5" for number in range(5)])) as related:
        np.testing.assert_array_equal(show(related), np.arange(2) + np.arange(5)[:, None])
        assert len(related._open) == 2
        write_values(tmp_path / "s0.h5", a=np.arange(2000))
        related.close()
        with pytest.raises(SourceError, match="changed"):
            show(related)


def test_the_traps_are_followed() -> None:
    folder = SHARED / "traps"
    if not (folder / "extlink.h5").is_file():
        pytest.skip("the collection traps is not beside the project")
    with opened(folder / "extlink.h5") as related:
        paths = [one.path for one in interpret_names(related.file, related.links).variables()]
        assert paths == ["/ext", "/x"]
    with opened(folder / "extlink_broken.h5") as related:
        (problem,) = interpret_names(related.file, related.links).problems
        assert problem.path == "/ext"


# --- as references


def read_back(references: Path) -> Any:
    """Return the Zarr group that references show."""
    import fsspec
    import zarr
    from zarr.storage import FsspecStore

    options = {"remote_protocol": "file", "remote_options": {"asynchronous": True}, "asynchronous": True}
    store = FsspecStore(fsspec.filesystem("reference", fo=str(references), **options), path="", read_only=True)
    return zarr.open_group(store, mode="r")


def test_references_to_several_files_are_read_by_zarr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        write_values(tmp_path / f"s{number}.h5", a=np.arange(4000).reshape(1000, 4) + number)
    np.arange(3000, dtype="f8").tofile(tmp_path / "a.raw")
    layout = h5py.VirtualLayout((4, 1000, 4), "i8")
    for number in range(4):
        layout[number] = h5py.VirtualSource(f"s{number}.h5", "a", (1000, 4))
    with h5py.File(tmp_path / "main.h5", "w") as file:
        file.create_virtual_dataset("virtual", layout, fillvalue=-1)
        file.create_dataset("raw", (3000,), "f8", external=[("a.raw", 0, 24_000)])
        file["linked"] = h5py.ExternalLink("s1.h5", "/a")
    result = translate("main.h5", tmp_path / "refs.json")
    assert not result.problems
    assert [str(one) for one in result.warnings] == [
        "/virtual: the source 'a' in 's3.h5' is missing and reads as the fill value"
    ]
    assert len(result.provenance.sources) == len(result.hierarchy.urls) == 5
    group = read_back(tmp_path / "refs.json")
    with h5py.File(tmp_path / "main.h5") as file:
        for name in ("virtual", "raw", "linked"):
            np.testing.assert_array_equal(group[name][...], file[name][...])


# --- from far away


def remote(tmp_path: Path, names: list[str], missing: int = 99) -> dict[str, bytes]:
    files = {}
    for number, name in enumerate(names):
        if number != missing:
            files[f"/data/{name}"] = write_values(tmp_path / name, a=np.arange(2) + 10 * number).read_bytes()
    files["/data/v.h5"] = write_virtual(tmp_path / "v.h5", [*names]).read_bytes()
    return files


def shown_from(url: str) -> tuple[np.ndarray[Any, Any], tuple[str, ...]]:
    with open_source(url) as source, find_related(source, scan_source(source), url) as related:
        return show(related), related.urls


def test_remote_files_are_found_beside_each_other_several_at_a_time(tmp_path: Path) -> None:
    files = remote(tmp_path, [f"s {number}.h5" for number in range(12)], missing=5)
    with RangeServer(files, latency=0.02) as server:
        values, urls = shown_from(server.url("/data/v.h5"))
        assert server.counts.max_in_flight > 1
        assert urls[1] == server.url("/data/s%200.h5")
    expected = np.arange(2) + 10 * np.arange(12)[:, None]
    expected[5] = -1
    np.testing.assert_array_equal(values, expected)


def test_a_remote_file_may_be_raw_to_one_and_not_to_another(tmp_path: Path) -> None:
    path = write_links(tmp_path / "main.h5", linked=("s.h5", "/a"))
    with h5py.File(path, "a") as file:
        file.create_dataset("raw", (8,), "u1", external=[("s.h5", 0, 8)])
    other = write_values(tmp_path / "s.h5", a=np.arange(2)).read_bytes()
    with RangeServer({"/main.h5": path.read_bytes(), "/s.h5": other}) as server:
        url = server.url("/main.h5")
        with open_source(url) as source, find_related(source, scan_source(source), url) as related:
            assert show(related, "raw").tobytes() == other[:8]
            assert [name for _, name in related.links] == ["s.h5"]
            assert related.urls[1:] == (server.url("/s.h5"),) * 2


def test_a_remote_file_that_is_refused_is_not_taken_for_missing(tmp_path: Path) -> None:
    files = remote(tmp_path, ["s.h5"])
    faults = Faults(statuses=dict.fromkeys(range(2, 20), 403))
    with RangeServer(files, faults=faults) as server, pytest.raises(SourceError, match="refused"):
        shown_from(server.url("/data/v.h5"))


def test_a_remote_file_cannot_make_this_machine_read_its_own_files(tmp_path: Path) -> None:
    secret = write_values(tmp_path / "secret.h5", a=np.arange(2))
    files = {"/data/v.h5": write_virtual(tmp_path / "v.h5", [str(secret)]).read_bytes()}
    with RangeServer(files) as server:
        values, urls = shown_from(server.url("/data/v.h5"))
        assert urls == (server.url("/data/v.h5"),)
        assert (values == -1).all()


# --- outside the directory of the file


def write_outside(folder: Path, kind: str) -> Path:
    """Return a file in a directory of its own that refers to one beside that directory, by a link or otherwise."""
    (folder / "own").mkdir()
    write_values(folder / "secret.h5", a=np.arange(2))
    np.arange(2).tofile(folder / "secret.raw")
    path = folder / "own" / "v.h5"
    if kind == "link":
        return write_links(path, x=("../secret.h5", "/a"))
    if kind == "virtual":
        return write_virtual(path, [str(folder / "secret.h5")])
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (2,), "i8", external=[(str(folder / "secret.raw"), 0, 16)])
    return path


KINDS = ["link", "virtual", "raw"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_outside_the_directory_is_refused_by_name_and_not_missing(kind: str, tmp_path: Path) -> None:
    done = translate(write_outside(tmp_path, kind))
    (problem,) = done.problems
    assert problem.path == "/x"
    assert problem.kind == "not allowed"
    assert "outside the directory" in problem.message
    assert "allow=" in problem.remedy
    assert len(done.hierarchy.urls) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_outside_the_directory_is_read_where_that_is_allowed(kind: str, tmp_path: Path) -> None:
    done = translate(write_outside(tmp_path, kind), allow=(str(tmp_path),))
    assert not done.problems
    assert done.arrays()["/x"].shape in ((2,), (1, 2))
    assert len(done.hierarchy.urls) == 2


def test_the_working_directory_is_outside_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_values(tmp_path / "s.h5", a=np.arange(2))
    (tmp_path / "own").mkdir()
    path = write_virtual(tmp_path / "own" / "v.h5", ["s.h5"])
    assert [one.kind for one in translate(path).problems] == ["not allowed"]
    assert not translate(path, allow=(".",)).problems


def test_another_file_of_that_name_does_not_take_the_place_of_one_that_is_refused(tmp_path: Path) -> None:
    path = write_outside(tmp_path, "virtual")
    write_values(tmp_path / "own" / "secret.h5", a=np.arange(2) + 100)
    assert [one.kind for one in translate(path).problems] == ["not allowed"]


def test_a_remote_file_may_not_lead_out_of_its_directory_unless_allowed(tmp_path: Path) -> None:
    files = {
        "/data/own/v.h5": write_virtual(tmp_path / "v.h5", ["../s.h5"]).read_bytes(),
        "/data/s.h5": write_values(tmp_path / "s.h5", a=np.arange(2)).read_bytes(),
    }
    with RangeServer(files) as server:
        url = server.url("/data/own/v.h5")
        assert [one.kind for one in translate(url).problems] == ["not allowed"]
        done = translate(url, allow=(server.url("/data"),))
        assert not done.problems
        assert done.hierarchy.urls[1:] == (server.url("/data/s.h5"),)

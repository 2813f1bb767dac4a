"""Whole files: what is reached, what is named as a problem, and that one does not take the other with it."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import h5zarr
from h5zarr.errors import MalformedFile
from h5zarr.hdf5.messages.notes import Notes
from h5zarr.hdf5.model import Dataset, Group, H5File, HardLink


def header_address(path: Path, name: str) -> int:
    with h5py.File(path, "r") as file:
        return int(h5py.h5o.get_info(file[name].id).addr)


@pytest.fixture(params=["earliest", "latest"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "file.h5"
    with h5py.File(path, "w", libver=request.param) as file:
        for name in ("first", "second", "group/third"):
            file[name] = np.arange(4)
            file[name].attrs["unit"] = np.float64(1.5)
        file["alias"] = file["first"]
        file["group/up"] = file["/"]
    return path


def test_a_broken_object_leaves_the_others_whole(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[header_address(path, "second")] ^= 0xFF
    path.write_bytes(content)
    file = h5zarr.scan(str(path))
    assert [name for name, _ in file.datasets()] == ["/alias", "/group/third"]
    (problem,) = file.problems
    assert (problem.path, problem.kind) == ("/second", "malformed")
    assert f"(byte {header_address_of(file, 'second'):#x})" in problem.message
    assert "compare its size" in problem.remedy


def header_address_of(file: H5File, name: str) -> int:
    link = file.root.links[name]
    assert isinstance(link, HardLink)
    return link.address


def test_a_broken_attribute_leaves_its_dataset_whole(tmp_path: Path) -> None:
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as file:
        file["data"] = np.arange(4)
        file["data"].attrs["marked_one"] = np.arange(3, dtype="i4")
        file["data"].attrs["other"] = np.int32(7)
    content = bytearray(path.read_bytes())
    datatype = content.index(b"marked_one") + 16  # version 1 messages pad the name to a multiple of eight
    content[datatype] = 0x9F  # a datatype of version 9, class 15
    path.write_bytes(content)
    file = h5zarr.scan(str(path))
    dataset = dict(file.datasets())["/data"]
    assert set(dataset.attributes) == {"other"}
    assert [problem.path for problem in file.problems] == ["/data@marked_one"]


def test_an_object_with_several_links_is_read_once_under_its_first_path(path: Path) -> None:
    file = h5zarr.scan(str(path))
    assert [name for name, _ in file.datasets()] == ["/alias", "/second", "/group/third"]
    first, alias = file.root.links["first"], file.root.links["alias"]
    assert isinstance(first, HardLink)
    assert isinstance(alias, HardLink)
    assert first.address == alias.address


def test_links_come_in_the_order_of_their_creation_where_that_is_tracked(tmp_path: Path) -> None:
    path = tmp_path / "file.h5"
    names = [f"{chr(122 - n % 26)}{n}" for n in range(40)]  # enough for dense storage, and not sorted
    with h5py.File(path, "w", libver="latest") as file:
        for tracked in (True, False):
            group = file.create_group(f"tracked_{tracked}", track_order=tracked)
            for name in names:
                group[name] = 1
    groups = dict(h5zarr.scan(str(path)).walk())
    for tracked, expected in ((True, names), (False, sorted(names))):
        group = groups[f"/tracked_{tracked}"]
        assert isinstance(group, Group)
        assert list(group.links) == expected


def test_times_comments_and_reference_counts_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("data", data=1, track_times=True)
        file["again"] = dataset
        h5py.h5o.set_comment(dataset.id, b"measured with care")
        file.create_dataset("plain", data=1, track_times=False)
    datasets = dict(h5zarr.scan(str(path)).datasets())
    noted = datasets["/again"].notes
    assert (noted.reference_count, noted.comment) == (2, "measured with care")
    assert abs((noted.modification_time or 0) - path.stat().st_mtime) < 60
    assert datasets["/plain"].notes == Notes()


def test_a_cycle_of_links_ends(path: Path) -> None:
    file = h5zarr.scan(str(path))
    group = next(found for name, found in file.walk() if name == "/group")
    assert isinstance(group, Group)
    up = group.links["up"]
    assert isinstance(up, HardLink)
    assert up.address == file.root.address


def test_a_truncated_file_says_how_much_is_missing(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-4])
    try:
        said = str(h5zarr.scan(str(path)).problems[0])
    except MalformedFile as error:  # where the last bytes are those of the root group
        said = f"/: {error}"
    assert said.startswith("/: ")
    assert f"it should have {len(content)} bytes, but 4 are missing" in said


def test_a_file_without_a_superblock_is_refused_with_what_it_begins_with(tmp_path: Path) -> None:
    path = tmp_path / "text.h5"
    path.write_text("Dear Sir or Madam")
    with pytest.raises(MalformedFile, match=r"not an HDF5 or netCDF file.*b'Dear Sir"):
        h5zarr.scan(str(path))


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.h5"
    path.write_bytes(b"")
    with pytest.raises(MalformedFile, match="not an HDF5 or netCDF file: this is an empty file"):
        h5zarr.scan(str(path))


def test_groups_nested_deeper_than_the_stack_are_read(tmp_path: Path) -> None:
    path = tmp_path / "deep.h5"
    depth = 3000
    with h5py.File(path, "w", libver="latest") as file:
        group = file
        for _ in range(depth):
            group = group.create_group("g")
        group["data"] = 1
    file = h5zarr.scan(str(path))
    ((name, found),) = file.datasets()
    assert name == "/g" * depth + "/data"
    assert isinstance(found, Dataset)

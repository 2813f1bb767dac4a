"""Links: every name of an object is shown, as netCDF shows it; what leads nowhere is named."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from h5zarr.formats import scan
from h5zarr.netcdf4.names import interpret_names
from tests.truth.names_against_netcdf import named


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made.h5"


def paths(path: Path) -> list[str]:
    return [one.path for one in named(path).variables()]


def test_every_hard_link_to_a_dataset_or_a_group_is_a_name(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["group/v"] = 1
        file["alias"] = file["group"]
        file["w"] = file["group/v"]
    assert paths(path) == ["/w", "/alias/v", "/group/v"]


def test_soft_links_are_followed_wherever_they_lead(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["group/inner/v"] = 1
        file["group/relative"] = h5py.SoftLink("./inner/v")
        file["absolute"] = h5py.SoftLink("/group/inner")
        file["over_another"] = h5py.SoftLink("absolute/v")
    assert paths(path) == ["/over_another", "/absolute/v", "/group/relative", "/group/inner/v"]


def test_a_broken_soft_link_is_named_and_the_rest_is_there(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["v"] = 1
        file["broken"] = h5py.SoftLink("/no/where")
    (problem,) = named(path).problems
    assert (problem.path, problem.kind) == ("/broken", "link")
    assert "'/no/where'" in problem.message
    assert paths(path) == ["/v"]


def test_soft_links_in_a_circle_end(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["a"] = h5py.SoftLink("b/b/b")
        file["b"] = h5py.SoftLink("a/a/a")
    assert {problem.kind for problem in named(path).problems} == {"link"}


def test_a_group_inside_itself_is_not_entered_again(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["a/b/v"] = 1
        file["a/b/again"] = file["a"]
        file["a/soft"] = h5py.SoftLink("/")
    assert paths(path) == ["/a/b/v"]
    assert [(problem.path, problem.kind) for problem in named(path).problems] == [
        ("/a/soft", "link"),
        ("/a/b/again", "link"),
    ]


def test_a_few_links_do_not_make_millions_of_names(path: Path) -> None:
    with h5py.File(path, "w") as file:
        inner = file.create_group("0")
        inner["v"] = 1
        for level in range(1, 40):
            outer = file.create_group(f"level{level}")
            outer["left"] = outer["right"] = inner
            inner = outer
    naming = named(path)
    assert len(naming.groups) < 12_000
    (problem,) = naming.problems
    assert "too many paths" in problem.message
    assert any(one.path == "/0/v" for one in naming.variables())


def test_an_external_link_leads_into_the_other_file(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as other:
        x = other.create_dataset("x", (3,), "f4")
        x.make_scale("x")
        other.create_dataset("g/v", (3,), "f4").dims[0].attach_scale(x)
        other["g/soft"] = h5py.SoftLink("/g/v")
    with h5py.File(tmp_path / "made.h5", "w") as file:
        file["group"] = h5py.ExternalLink("other.h5", "/g")
        file["one"] = h5py.ExternalLink("other.h5", "g/v")
        file["nothing"] = h5py.ExternalLink("other.h5", "/missing")
    naming = named(tmp_path / "made.h5")
    assert {one.path: one.dimensions for one in naming.variables()} == {
        "/one": ("x",),
        "/group/soft": ("x",),
        "/group/v": ("x",),
    }
    assert all(one.file.url.endswith("other.h5") for one in naming.variables())
    (problem,) = naming.problems
    assert (problem.path, problem.kind) == ("/nothing", "link")
    assert problem.message == "external link into 'other.h5': link to '/missing', which does not exist"


def test_an_external_link_to_a_file_that_could_not_be_had_is_named(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["away"] = h5py.ExternalLink("gone.h5", "/v")
    (problem,) = interpret_names(scan(str(path))).problems
    assert (problem.path, problem.kind) == ("/away", "source")
    assert "'/v' in 'gone.h5'" in problem.message


def test_committed_datatypes_are_neither_variables_nor_problems(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["type"] = np.dtype([("a", "i4")])
    naming = named(path)
    assert not naming.problems
    assert not list(naming.variables())


@pytest.mark.parametrize("name", ["zarr.json", "..", "back\\slash"])
def test_a_name_that_no_zarr_reader_could_look_up_is_left_out_and_named(path: Path, name: str) -> None:
    with h5py.File(path, "w") as file:
        file[name] = 1
        file["v"] = 1
    (problem,) = named(path).problems
    assert (problem.path, problem.kind) == (f"/{name}", "unrepresentable")
    assert paths(path) == ["/v"]


@pytest.mark.parametrize("name", ["c", "__private", ".zarray", "...", "with space", "Größe"])
def test_other_odd_names_are_fine(path: Path, name: str) -> None:
    with h5py.File(path, "w") as file:
        file[name] = 1
    assert paths(path) == [f"/{name}"]


def test_a_deep_file_is_walked_without_recursion(path: Path) -> None:
    with h5py.File(path, "w", libver="latest") as file:
        group = file
        for _ in range(1500):
            group = group.create_group("g")
        group["v"] = 1
    assert len(named(path).groups) == 1501

"""Every file that the netCDF library opens, compared with it: groups, variables, dimensions, lengths, attributes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from h5zarr.netcdf4.named_file import Naming
from tests.collections_of_files import SAMPLES, SHARED, name_of, parameters, sample_files, shared_files, translatable
from tests.netcdf4.random_files import make_file
from tests.truth.names_against_netcdf import compare, is_cyclic, named
from tests.truth.netcdf_library import NetcdfLibrary
from tests.truth.unreadable import CYCLIC, NOT_OPENED_BY_NETCDF


@pytest.fixture(scope="module")
def library() -> Iterator[NetcdfLibrary]:
    started = NetcdfLibrary()
    yield started
    started.close()


def check(path: Path, library: NetcdfLibrary, record_property: pytest.RecordProperty) -> None:
    naming = named(path)
    check_rules(naming)
    found = compare(path, library, naming)
    record_property("variables", len(found.compared))
    record_property("not opened", len(found.unopened))
    for _, reason in found.allowed:
        record_property(reason.value, 1)
    assert not found.differences
    assert is_cyclic(naming) == (name_of(path) in CYCLIC)
    assert not found.unopened or name_of(path) in NOT_OPENED_BY_NETCDF or name_of(path) in CYCLIC, found.unopened


def check_rules(naming: Naming) -> None:
    """What must hold of every file, whatever is in it: the rules of Zarr and xarray."""
    for group in naming.groups:
        lengths: dict[str, int] = {}
        for variable in group.variables:
            space = variable.dataset.dataspace
            assert len(variable.dimensions) == len(variable.shape) == space.rank
            assert all(variable.dimensions)
            made_up = [name for name in variable.dimensions if name.startswith("phony_dim_")]
            assert len(made_up) == len(set(made_up))
            assert all(ours >= stored for ours, stored in zip(variable.shape, space.shape, strict=True))
            for name, length in zip(variable.dimensions, variable.shape, strict=True):
                assert lengths.setdefault(name, length) == length
        for dimension in group.dimensions:
            assert lengths.setdefault(dimension.name, dimension.length) == dimension.length
    paths = [one.path for one in naming.variables()] + [one.path for one in naming.groups]
    assert len(paths) == len(set(paths))


def few_and_many(*, few: int, many: int, step: int) -> list[object]:
    """Return seeds as pytest parameters; those from `few` on are slow."""
    slow = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(few, many, step)]
    return [*range(0, few, step), *slow]


@pytest.mark.parametrize("path", parameters(sample_files(), SAMPLES))
def test_sample_files_are_named_as_netcdf_names_them(path: Path, library, record_property) -> None:
    check(path, library, record_property)


@pytest.mark.parametrize("path", parameters(translatable(shared_files("corpus")), SHARED / "corpus"))
def test_real_files_are_named_as_netcdf_names_them(path: Path, library, record_property) -> None:
    check(path, library, record_property)


@pytest.mark.parametrize("path", parameters(translatable(shared_files("traps")), SHARED / "traps"))
def test_traps_are_named_as_netcdf_names_them(path: Path, library, record_property) -> None:
    check(path, library, record_property)


@pytest.mark.parametrize("seed", few_and_many(few=120, many=600, step=20))
def test_random_files_are_named_as_netcdf_names_them(seed: int, tmp_path: Path, library) -> None:
    for number in range(seed, seed + 20):
        path = tmp_path / f"{number}.h5"
        make_file(path, number, sane=True)
        naming = named(path)
        check_rules(naming)
        assert not compare(path, library, naming).differences, number


@pytest.mark.parametrize("seed", few_and_many(few=150, many=600, step=50))
def test_files_that_netcdf_refuses_still_keep_the_rules(seed: int, tmp_path: Path) -> None:
    for number in range(seed, seed + 50):
        path = tmp_path / f"{number}.h5"
        make_file(path, number, sane=False)
        check_rules(named(path))

"""What h5zarr writes is valid, and breaks no rule of NZ that it does not name itself."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from h5zarr.commands.translate.translate import translate
from h5zarr.commands.translate.translation import Translation
from h5zarr.commands.validate.validate import Validation, validate
from tests.collections_of_files import any_samples, translatable_shared

LARGE_NBYTES = 50_000_000


def small(folder: str) -> list[object]:
    return translatable_shared(folder, most_nbytes=LARGE_NBYTES)


def translated(path: Path, zarr_format: int, nz: bool) -> Translation:
    return translate(path, zarr_format=zarr_format, nz=nz)


def written(done: Translation, out: Path, nz: bool) -> Validation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done.write(out)
    found = validate(out, nz=nz)
    assert not any("could not be applied" in one.reason for one in found.not_checked)
    return found


def against_nz(found: Validation) -> set[tuple[str, str]]:
    return {(one.path, f"{one.message}, against NZ-1.0") for one in found.findings if one.rule.startswith("nz/")}


def named(done: Translation) -> set[tuple[str, str]]:
    return {(one.path, one.message) for one in (*done.problems, *done.warnings) if one.kind == "nz"}


@pytest.mark.parametrize("path", any_samples())
def test_samples_with_version_3_are_valid_and_what_breaks_nz_is_named(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow.parquet")
    done = translated(path, 3, nz=True)
    in_json, in_parquet = (written(done, tmp_path / name, nz=True) for name in ("refs.json", "refs.parquet"))
    assert [str(one) for one in (*in_json.errors, *in_parquet.errors)] == []
    assert against_nz(in_json) == named(done)
    assert against_nz(in_parquet) <= named(done)  # which cannot hold every name


@pytest.mark.parametrize("path", any_samples())
def test_samples_with_version_2_are_valid(path: Path, tmp_path: Path) -> None:
    found = written(translated(path, 2, nz=False), tmp_path / "refs.json", nz=False)
    assert [str(one) for one in found.errors] == []


@pytest.mark.slow
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("path", [*any_samples(), *small("corpus"), *small("traps")])
def test_every_file_is_valid_in_every_container(path: Path, zarr_format: int, tmp_path: Path) -> None:
    for nz in (False, True):
        done = translated(path, zarr_format, nz)
        for name in ("refs.json", "refs.json.gz", "refs.parquet"):
            found = written(done, tmp_path / name, nz)
            reserved = {one.path for one in done.warnings if one.kind == "name"}
            assert reserved == {one.path for one in found.errors if one.rule == "zarr3/node-names"}
            errors = [one for one in found.errors if one.rule not in ("nz/zarr-v3", "zarr3/node-names")]
            assert [str(one) for one in errors] == []
            assert against_nz(found) <= named(done)

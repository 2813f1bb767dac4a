"""Every limit: what is above it ends in an error that names it, and what is allowed is read."""

from __future__ import annotations

import gzip
import json
import zlib
from base64 import b64encode
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray
from netCDF4 import Dataset

import h5zarr
from h5zarr.cli import main
from h5zarr.limits import LimitReached, Limits

CHUNK_NBYTES = 1 << 16


def write_groups(folder: Path) -> Path:
    path = folder / "groups.h5"
    with h5py.File(path, "w") as file:
        file["a/b/c/d"] = np.arange(3)
        file["e"] = 1
    return path


def write_classic(folder: Path) -> Path:
    path = folder / "classic.nc"
    with Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", 3)
        for number in range(5):
            file.createVariable(f"v{number}", "f4", ("x",))
    return path


def write_links(folder: Path) -> Path:
    path = folder / "links.h5"
    with h5py.File(path, "w") as file:
        for number in range(4):
            with h5py.File(folder / f"other{number}.h5", "w") as other:
                other["x"] = 1
            file[f"l{number}"] = h5py.ExternalLink(f"other{number}.h5", "/x")
    return path


def write_references(folder: Path) -> Path:
    """References that carry one chunk of zeros, compressed."""
    array = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [CHUNK_NBYTES],
        "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [CHUNK_NBYTES]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 0,
        "codecs": [{"name": "bytes"}, {"name": "numcodecs.zlib", "configuration": {"level": 9}}],
        "dimension_names": ["x"],
    }
    content = "base64:" + b64encode(zlib.compress(bytes(CHUNK_NBYTES))).decode()
    refs = {"zarr.json": json.dumps({"zarr_format": 3, "node_type": "group"}), "a/zarr.json": json.dumps(array)}
    path = folder / "refs.json"
    path.write_text(json.dumps({"version": 1, "refs": refs | {"a/c/0": content}}))
    return path


def write_compressed_references(folder: Path) -> Path:
    path = folder / "refs.json.gz"
    path.write_bytes(gzip.compress(write_references(folder).read_bytes() + b" " * 10_000_000))
    return path


def scan(path: Path, limits: dict[str, int]) -> Any:
    return h5zarr.scan(str(path), limits=limits)


def translate(path: Path, limits: dict[str, int]) -> Any:
    done = h5zarr.translate(path, limits=limits)
    if done.problems:
        raise LimitReached(done.problems[0].message, "file_count", 4)
    return done


def read(path: Path, limits: dict[str, int]) -> Any:
    with xarray.open_dataset(path, engine="h5zarr", limits=limits) as opened:
        return opened.load()


# What is written, how it is read, the limit, the most that is too little, and what the error says.
CASES: dict[str, tuple[Callable[[Path], Path], Callable[[Path, dict[str, int]], Any], str, int, str]] = {
    "nesting": (write_groups, scan, "depth", 3, "nested 4 levels deep"),
    "objects": (write_groups, scan, "object_count", 5, "6 objects or more"),
    "variables": (write_classic, translate, "object_count", 5, "6 dimensions and variables"),
    "metadata": (write_groups, scan, "metadata_nbytes", 1000, r"metadata take [\d,]+ bytes"),
    "metadata of netCDF-3": (write_classic, translate, "metadata_nbytes", 100, r"metadata take [\d,]+ bytes"),
    "files": (write_links, translate, "file_count", 4, "too many"),
    "chunk": (write_references, read, "chunk_nbytes", CHUNK_NBYTES - 1, "a chunk takes 65,536 bytes"),
    "references": (write_references, read, "references_nbytes", 500, "references take"),
    "compressed references": (write_compressed_references, read, "references_nbytes", 9_000_000, "references take"),
}


@pytest.mark.parametrize(("write", "use", "name", "most", "words"), CASES.values(), ids=CASES)
def test_exceeding_a_limit_is_an_error_that_names_it(
    write: Callable[[Path], Path],
    use: Callable[[Path, dict[str, int]], Any],
    name: str,
    most: int,
    words: str,
    tmp_path: Path,
) -> None:
    path = write(tmp_path)
    use(path, {})
    with pytest.raises(LimitReached, match=words):
        use(path, {name: most})


@pytest.mark.parametrize("name", ["nesting", "objects", "variables", "chunk"])
def test_what_is_at_a_limit_is_read(name: str, tmp_path: Path) -> None:
    write, use, limit, most, _ = CASES[name]
    use(write(tmp_path), {limit: most + 1})


@pytest.mark.parametrize("command", ["translate", "inspect"])
def test_limits_of_the_command_line_count(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write_groups(tmp_path))
    out = [str(tmp_path / "out.json")] if command == "translate" else []
    assert main([command, path, *out]) == 0
    assert main([command, path, *out, "--limits", "depth=2"]) == 2
    said = capsys.readouterr().err
    assert "nested 3 levels deep; the limit is 2" in said
    assert "raise the limit: --limits depth=NUMBER" in said


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("size=3", "limits has no 'size'; it has depth,"),
        ("depth=0", "depth is 0, but must be at least 1"),
        ("depth", "expected a positive number"),
    ],
)
def test_invalid_limits_are_reported(given: str, complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "x.h5", "--limits", given]) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "kind"), [(0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError), (None, TypeError)]
)
def test_a_limit_is_a_positive_number(wrong: Any, kind: type[Exception]) -> None:
    for field in fields(Limits):
        with pytest.raises(kind, match=field.name):
            Limits(**{field.name: wrong})


def test_a_bomb_is_refused_before_it_is_inflated(tmp_path: Path) -> None:
    """A chunk that says it is small, and is not, and one that says it is huge."""
    path = write_references(tmp_path)
    honest = path.read_text()
    path.write_text(honest.replace("65536", "1024"))
    with pytest.raises(h5zarr.H5ZarrError, match="does not decompress to the expected size"):
        read(path, {})
    path.write_text(honest.replace("65536", str(1 << 40)))
    with (
        pytest.raises(LimitReached, match="a chunk takes 1,099,511,627,776 bytes"),
        xarray.open_dataset(path, engine="h5zarr") as opened,
    ):
        opened.a[:10].load()

"""References from elsewhere: they make this machine read its own files only where the user allows that."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray
import zarr

import h5zarr
from h5zarr.cli import main
from h5zarr.commands.verify.verify import verify
from h5zarr.io.allowed import NotAllowed
from tests.servers import RangeServer

LONG = np.arange(5000.0)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.h5"
    with h5py.File(path, "w") as file:
        file["a"] = LONG
    h5zarr.translate(path, tmp_path / "refs.json")
    h5zarr.translate(path, tmp_path / "refs.parquet")
    return path


@pytest.fixture(params=["refs.json", "refs.parquet"])
def url(request: pytest.FixtureRequest, secret: Path) -> Iterator[str]:
    """References on a server to a file on this machine."""
    found = [path for path in secret.parent.rglob("*") if path.is_file() and "refs" in str(path)]
    files = {f"/{path.relative_to(secret.parent)}": path.read_bytes() for path in found}
    with RangeServer(files) as server:
        yield server.url(f"/{request.param}")


def read_store(url: str, **choices: Any) -> Any:
    store = h5zarr.open_store(url, **choices)
    try:
        return zarr.open_group(store, mode="r")["a"][...]
    finally:
        store.close()


def read_dataset(url: str, **choices: Any) -> Any:
    with xarray.open_dataset(url, engine="h5zarr", **choices) as opened:
        return opened.a.values


@pytest.mark.parametrize("read", [read_store, read_dataset])
def test_a_file_on_this_machine_is_read_only_where_that_is_allowed(read: Any, url: str, secret: Path) -> None:
    with pytest.raises(NotAllowed, match="remote references name a file on this machine"):
        read(url)
    with pytest.raises(NotAllowed):
        read(url, allow=[str(secret.parent / "elsewhere")])
    assert (read(url, allow=[str(secret.parent)]) == LONG).all()


def test_pickled_sources_are_not_allowed_more(url: str, secret: Path) -> None:
    with xarray.open_dataset(url, engine="h5zarr") as opened, pytest.raises(NotAllowed):
        pickle.loads(pickle.dumps(opened)).a.load()
    with xarray.open_dataset(url, engine="h5zarr", allow=[str(secret.parent)]) as opened:
        assert (pickle.loads(pickle.dumps(opened)).a.values == LONG).all()


def test_verify_opens_no_file_on_this_machine_either(url: str, secret: Path) -> None:
    with pytest.raises(NotAllowed):
        verify(url)
    assert main(["verify", url, "--quiet"]) == 2
    assert verify(url, allow=[str(secret.parent)]).is_right
    assert main(["verify", url, "--quiet", "--allow", str(secret.parent)]) == 0


def test_a_single_text_is_not_a_list_of_places(secret: Path) -> None:
    with pytest.raises(TypeError, match="allow"):
        h5zarr.open_store(secret, allow="/")
    with pytest.raises(TypeError, match="allow"):
        h5zarr.translate(secret, allow="/")


ABSURD = [
    [-1, 10],
    [0, -1],
    [1 << 63, 1],
    [(1 << 63) - 1, 2],
    [1, (1 << 63) - 1],
    [1 << 64, 1 << 64],
    [0.5, 1],
    [True, 1],
    ["0", "1"],
    [None, None],
    [10**400, 1],
]


@pytest.mark.parametrize("span", ABSURD, ids=lambda span: str(span)[:40])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_addresses_and_sizes_that_no_file_has_are_refused(span: list[Any], zarr_format: int, tmp_path: Path) -> None:
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as file:
        file["a"] = LONG
    h5zarr.translate(path, path.with_suffix(".json"), zarr_format=zarr_format)
    document = json.loads(path.with_suffix(".json").read_text())
    (key,) = [key for key, value in document["refs"].items() if isinstance(value, list)]
    document["refs"][key][1:] = span
    path.with_suffix(".json").write_text(json.dumps(document))
    with pytest.raises(h5zarr.H5ZarrError, match=r"a reference is a URL, alone or with an address|no JSON"):
        h5zarr.open_store(path.with_suffix(".json"))


@pytest.mark.parametrize("span", [[1 << 40, 40_000], [100, 40_000], [0, 1 << 40]], ids=str)
def test_chunks_behind_the_end_of_the_file_are_refused_without_allocating(span: list[int], tmp_path: Path) -> None:
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as file:
        file["a"] = LONG
    h5zarr.translate(path, path.with_suffix(".json"))
    text = path.with_suffix(".json").read_text()
    document = json.loads(text)
    (reference,) = [value for value in document["refs"].values() if isinstance(value, list)]
    reference[1:] = span
    path.with_suffix(".json").write_text(json.dumps(document))
    if span == [100, 40_000]:  # it is inside: a reference may mean any bytes of a file that it may name
        assert not (read_dataset(str(path.with_suffix(".json"))) == LONG).all()
        return
    for read in (read_dataset, read_store):
        with pytest.raises(h5zarr.H5ZarrError):
            read(str(path.with_suffix(".json")))


CODE = {
    "expression": "{{ 7 * 7 }}",
    "call": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "filter": "{{ u | upper }}",
    "statement": "{% for x in range(10**9) %}{% endfor %}",
    "comment": "{# x #}",
    "nested": "{{ {{u}} }}",
    "arguments": "{{u(1)}}",
}


@pytest.mark.parametrize("code", CODE.values(), ids=CODE)
@pytest.mark.parametrize("place", ["template", "url"])
def test_code_in_templates_is_never_run(code: str, place: str, tmp_path: Path) -> None:
    array = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|u1", "filters": None, "compressor": None}
    array |= {"fill_value": 0, "order": "C"}
    refs = {".zgroup": '{"zarr_format": 2}', "a/.zarray": json.dumps(array)}
    templates = {"u": code if place == "template" else "s3://bucket"}
    refs["a/0"] = ["{{u}}/x" if place == "template" else f"{code}/x", 0, 4]  # type: ignore[assignment]
    path = tmp_path / "refs.json"
    path.write_text(json.dumps({"version": 1, "templates": templates, "refs": refs}))
    with pytest.raises(h5zarr.H5ZarrError, match="code"):
        h5zarr.open_store(path)


def test_generators_of_references_are_never_run(tmp_path: Path) -> None:
    path = tmp_path / "refs.json"
    gen = [{"key": "a/{{i}}", "url": "x", "dimensions": {"i": {"stop": 10**12}}}]
    path.write_text(json.dumps({"version": 1, "refs": {}, "gen": gen}))
    with pytest.raises(h5zarr.H5ZarrError, match="generators"):
        h5zarr.open_store(path)

"""Files that others name by odd names, in a directory with an odd name: here, on a web server, and in a bucket."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import fsspec
import h5py
import numpy as np
import pytest
import zarr

from h5zarr.commands.translate.translate import translate
from h5zarr.commands.translate.translation import Translation
from h5zarr.store import open_store
from tests.roundtrip.test_odd_urls import IN_BUCKET, NAMES
from tests.s3 import s3_server
from tests.servers import RangeServer

pytest.importorskip("s3fs")
pytest.importorskip("moto.server")
pytestmark = [
    pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

FOLDER = "in {{x}} 100%20 #1?a=b;c+é"
REFUSED = re.compile(r"::|\\|^[A-Za-z]:")  # in names of files that are not on this machine
KINDS = ("linked", "virtual", "raw")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a file that refers to all others, in each of the three ways."""
    made = tmp_path_factory.mktemp("siblings") / FOLDER
    (made / "sub dir%").mkdir(parents=True)
    with h5py.File(made / "main.h5", "w") as main:
        for number, name in enumerate(NAMES):
            place = name if number % 2 else f"sub dir%/{name}"
            with h5py.File(made / place, "w") as file:
                file.create_dataset("v", data=np.arange(6) + 100 * number, chunks=(3,))
            raw = f"{place[:-1]}w"
            (np.arange(6) + 10_000 * number).tofile(made / raw)
            main[f"linked/{number}"] = h5py.ExternalLink(place, "/v")
            layout = h5py.VirtualLayout((6,), "i8")
            layout[:] = h5py.VirtualSource(place.replace("%", "%%"), "v", (6,))
            main.create_virtual_dataset(f"virtual/{number}", layout, fillvalue=-1)
            main.create_dataset(f"raw/{number}", (6,), "i8", external=[(raw, 0, 48)])
    return made


@pytest.fixture(scope="session")
def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder.parent)): path.read_bytes() for path in folder.rglob("*.h*") if path.is_file()}


@pytest.fixture(scope="session")
def s3(contents: Mapping[str, bytes]) -> Iterator[dict[str, Any]]:
    with s3_server() as options:
        filesystem = fsspec.filesystem("s3", **options)
        filesystem.mkdir("odd-siblings")
        for name, content in contents.items():
            if "\n" not in name:
                filesystem.pipe_file(f"odd-siblings/{name}", content)
        yield options


def expected(kind: str, number: int) -> Any:
    return np.arange(6) + (10_000 if kind == "raw" else 100) * number


def check(
    url: str, names: tuple[str, ...], refused: set[str], tmp_path: Path, options: Mapping[str, Any], reading: Any
) -> Translation:
    """Translate the file, and compare the values behind `names`; what has a refused one must be a problem."""
    numbers = [NAMES.index(name) for name in names]
    made = translate(url, tmp_path / "refs.json", storage_options=options, inline_bytes=0)
    problems = {problem.path: problem for problem in made.problems}
    stores = [open_store(place, storage_options=options) for place in (str(tmp_path / "refs.json"), url)]
    far = {"fo": str(tmp_path / "refs.json"), "skip_instance_cache": True, **reading}
    groups = [
        *(zarr.open_group(store, mode="r") for store in stores),
        zarr.open_group("reference://", storage_options=far, mode="r"),
    ]
    for kind in KINDS:
        for number in numbers:
            path = f"{kind}/{number}"
            if NAMES[number] in refused:
                assert repr(NAMES[number])[1:-3] in problems[f"/{path}"].message
                assert problems[f"/{path}"].remedy
                assert path not in groups[0]
                continue
            for group in groups:
                np.testing.assert_array_equal(group[path][:], expected(kind, number))
    return made


def test_beside_a_local_file(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)  # where the library looks for raw files
    made = check(str(folder / "main.h5"), NAMES, set(), tmp_path, {}, {})
    assert not made.problems
    assert not made.warnings
    with h5py.File(folder / "main.h5") as file:
        for kind in KINDS:
            for number in range(len(NAMES)):
                np.testing.assert_array_equal(file[f"{kind}/{number}"][:], expected(kind, number))


@pytest.mark.filterwarnings("ignore::h5zarr.errors.ProblemWarning")
def test_beside_a_file_on_a_web_server(contents: Mapping[str, bytes], tmp_path: Path) -> None:
    reading = {"remote_options": {"asynchronous": True, "encoded": True}}
    with RangeServer({f"/{name}": content for name, content in contents.items()}) as server:
        url = server.url(f"/{quote(FOLDER)}/main.h5")
        made = check(url, NAMES, set(filter(REFUSED.search, NAMES)), tmp_path, {}, reading)
        assert all(one.startswith(server.url(f"/{quote(FOLDER)}/")) for one in made.hierarchy.urls)
        assert {one.kind for one in made.warnings} == {"url"}  # of the ";"


@pytest.mark.filterwarnings("ignore::h5zarr.errors.ProblemWarning")
def test_beside_an_object_in_a_bucket(s3: dict[str, Any], tmp_path: Path) -> None:
    reading = {"remote_options": {"asynchronous": True, **s3}}
    url = f"s3://odd-siblings/{FOLDER}/main.h5"
    some = IN_BUCKET[::3]  # a request takes the server here long; all names are looked for, but not all values read
    assert any(map(REFUSED.search, some))
    made = check(url, some, set(filter(REFUSED.search, NAMES)), tmp_path, s3, reading)
    assert all(one.startswith(f"s3://odd-siblings/{FOLDER}/") for one in made.hierarchy.urls)


@pytest.mark.parametrize("target", [f"s3://odd-siblings/{FOLDER}/main.h5", f"https://host/{quote(FOLDER)}/main.h5"])
def test_with_another_url_names_are_written_as_it_needs_them(folder: Path, target: str) -> None:
    made = translate(folder / "main.h5", target_url=target)
    root = target.removesuffix("main.h5")
    names = (
        name if number % 2 else f"sub dir%/{name}" for number, name in enumerate(NAMES) if not REFUSED.search(name)
    )
    for name in names:
        written = root + (name if target.startswith("s3") else quote(name, safe="/~!$&'()*+,;=@"))
        assert written in made.hierarchy.urls

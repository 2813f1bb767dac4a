"""Public functions raise what Python programmers catch: FileNotFoundError, PermissionError, ValueError and so on."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import h5zarr
from h5zarr import errors
from h5zarr.cli import main
from h5zarr.errors import H5ZarrError
from tests.collections_of_files import SAMPLES
from tests.servers import Faults, RangeServer

Place = str
OCEAN = str(SAMPLES / "ocean.nc")


def _many(source: Place, **options: Any) -> None:
    for _, _, error in h5zarr.translate_many([source], **options):
        if error is not None:
            raise error


READERS: dict[str, Callable[..., Any]] = {
    "translate": h5zarr.translate,
    "translate_many": _many,
    "scan": h5zarr.scan,
    "inspect": h5zarr.inspect,
    "open_store": h5zarr.open_store,
    "convert": lambda source, **options: h5zarr.convert(source, "memory://out.json", **options),
    "verify": h5zarr.verify,
    "validate": h5zarr.validate,
    "engine": lambda source, **options: xr.open_dataset(source, engine="h5zarr", **options),
}


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return READERS[request.param]


@pytest.fixture
def server() -> Iterator[RangeServer]:
    with RangeServer({"/ocean.nc": Path(OCEAN).read_bytes()}) as server:
        yield server


def test_a_missing_file_is_a_file_not_found_error(reader: Callable[..., Any], tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.nc")
    with pytest.raises(FileNotFoundError, match=r"missing\.nc: there is no such file") as caught:
        reader(missing)
    assert isinstance(caught.value, H5ZarrError)
    assert (caught.value.filename, caught.value.errno) == (missing, 2)


def test_a_missing_file_on_a_server_is_a_file_not_found_error(reader: Callable[..., Any], server: RangeServer) -> None:
    with pytest.raises(FileNotFoundError, match=r"missing\.nc: there is no such file \(HTTP 404\)"):
        reader(server.url("/missing.nc"))


@pytest.mark.parametrize("name", ["data.example.org/a.nc", "127.0.0.1:8000/a.nc", "localhost/a.nc"])
def test_a_url_without_a_protocol_is_recognised(name: str) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        h5zarr.translate(name)
    assert caught.value.remedy == f"If this is a URL, write https://{name}."


def test_a_path_with_a_tilde_is_recognised() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        h5zarr.translate("~/none.nc")
    assert "os.path.expanduser" in caught.value.remedy


def test_only_readers_of_references_hear_that_a_file_may_have_moved(tmp_path: Path) -> None:
    source = tmp_path / "a.nc"
    source.write_bytes(Path(OCEAN).read_bytes())
    h5zarr.translate(source, tmp_path / "a.json")
    source.unlink()
    with pytest.raises(FileNotFoundError) as caught:
        h5zarr.translate(source)
    assert caught.value.remedy == "Check the path or URL."
    with xr.open_dataset(tmp_path / "a.json", engine="h5zarr") as dataset, pytest.raises(FileNotFoundError) as caught:
        dataset.sst.load()
    assert caught.value.remedy.endswith("it has been moved or removed since: translate it again from its new place.")
    assert caught.value.__notes__[0] == caught.value.remedy


def test_a_directory_is_an_is_a_directory_error(reader: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="this is a directory") as caught:
        reader(str(tmp_path))
    assert str(tmp_path) in str(caught.value)


def test_a_file_that_may_not_be_read_is_a_permission_error(
    reader: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def refuse(path: Any, *rest: Any, **more: Any) -> int:  # the user who runs the tests may read everything
        if path == OCEAN:
            raise PermissionError(13, "Permission denied")
        return opened(path, *rest, **more)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError, match=r"ocean\.nc: you do not have permission to read this file"):
        reader(OCEAN)


@pytest.mark.parametrize("status", [401, 403])
def test_refused_access_is_a_permission_error_with_the_status(
    reader: Callable[..., Any], server: RangeServer, status: int
) -> None:
    server.set_faults(Faults(every=status))
    with pytest.raises(PermissionError, match=rf"ocean\.nc: .*access was refused \(HTTP {status}\)"):
        reader(server.url("/ocean.nc"))


def test_a_server_that_is_not_there_is_a_connection_error(reader: Callable[..., Any]) -> None:
    with pytest.raises(ConnectionError, match=r"http://127\.0\.0\.1:1/ocean\.nc: the server cannot be reached"):
        reader("http://127.0.0.1:1/ocean.nc", network={"attempts": 1})


def test_a_server_that_hangs_is_a_timeout_error(reader: Callable[..., Any], server: RangeServer) -> None:
    server.set_faults(Faults(hang=frozenset(range(1, 100))))
    network = {"timeout_seconds": 0.2, "attempts": 1}
    with pytest.raises(TimeoutError, match=r"no answer within 0\.2 seconds") as caught:
        reader(server.url("/ocean.nc"), network=network)
    assert isinstance(caught.value, H5ZarrError)
    assert caught.value.remedy == "Try again, or allow more time: network={'timeout_seconds': 0.4}."


@pytest.mark.parametrize(
    ("options", "kind", "what"),
    [
        ({"network": {"hurry": 1}}, ValueError, "network has no 'hurry'; it has latency_seconds"),
        ({"network": {"attempts": 0}}, ValueError, "attempts is 0, but must be positive"),
        ({"network": {"attempts": "3"}}, TypeError, "attempts must be a number, not str"),
        ({"network": 3}, TypeError, "network must be a dict, not int"),
        ({"limits": {"width": 1}}, ValueError, "limits has no 'width'; it has depth"),
        ({"limits": {"depth": -1}}, ValueError, "depth is -1, but must be at least 1"),
        ({"limits": {"depth": "deep"}}, TypeError, "depth must be an integer, not str"),
        ({"limits": "none"}, TypeError, "limits must be a dict, not str"),
        ({"storage_options": "anon"}, TypeError, "storage_options must be a dict, not str"),
    ],
)
def test_wrong_ways_to_open_are_value_and_type_errors(
    reader: Callable[..., Any], options: dict[str, Any], kind: type[Exception], what: str
) -> None:
    with pytest.raises(kind, match=what):
        reader(OCEAN, **options)


@pytest.mark.parametrize(
    ("source", "what"),
    [(3, "expected a path or URL, not int"), (None, "expected a path or URL, not NoneType")],
)
def test_something_else_than_a_path_is_a_type_error(reader: Callable[..., Any], source: Any, what: str) -> None:
    if reader is READERS["engine"]:
        return  # xarray itself looks at what is opened
    with pytest.raises(TypeError, match=what):
        reader(source)


WRONG: dict[str, tuple[Callable[[Path], Any], type[Exception], str]] = {
    "zarr_format": (lambda tmp: h5zarr.translate(OCEAN, zarr_format=4), ValueError, "zarr_format is 4, but must be"),
    "zarr_format text": (lambda tmp: h5zarr.translate(OCEAN, zarr_format="3"), ValueError, "zarr_format is '3', but"),
    "convert": (
        lambda tmp: h5zarr.convert(_references(tmp), tmp / "out.json", zarr_format=1),
        ValueError,
        "zarr_format is 1, but must be 2 or 3",
    ),
    "group": (lambda tmp: h5zarr.translate(OCEAN, group="/none"), ValueError, "the file has no group /none"),
    "group type": (lambda tmp: h5zarr.translate(OCEAN, group=3), TypeError, "group must be a string, not int"),
    "include": (lambda tmp: h5zarr.translate(OCEAN, include=["none"]), ValueError, "nothing matches none"),
    "include text": (lambda tmp: h5zarr.translate(OCEAN, include="sst"), TypeError, r"include=\['sst'\]"),
    "include type": (lambda tmp: h5zarr.translate(OCEAN, include=[1]), TypeError, "include must be a list of strings"),
    "include empty": (lambda tmp: h5zarr.translate(OCEAN, include=[""]), ValueError, "include has the pattern ''"),
    "exclude text": (lambda tmp: h5zarr.translate(OCEAN, exclude="sst"), TypeError, r"exclude=\['sst'\]"),
    "allow text": (lambda tmp: h5zarr.translate(OCEAN, allow="/"), TypeError, "allow must be a list"),
    "chunk_bytes": (lambda tmp: h5zarr.translate(OCEAN, chunk_bytes=0), ValueError, "chunk_bytes is 0, but must be at"),
    "chunk_bytes text": (
        lambda tmp: h5zarr.translate(OCEAN, chunk_bytes="8MB"),
        TypeError,
        "must be a number of bytes",
    ),
    "branch": (lambda tmp: h5zarr.translate(OCEAN, tmp / "o.json", branch="a"), ValueError, "only an Icechunk reposit"),
    "at": (lambda tmp: h5zarr.convert(_references(tmp), tmp / "o.json", at="v1"), ValueError, "only an Icechunk repo"),
    "name": (lambda tmp: h5zarr.index(OCEAN, tmp / "out", name="{no}"), ValueError, r"has an unknown field \{no\}"),
    "sample": (lambda tmp: h5zarr.verify(_references(tmp), sample=2), ValueError, "sample is 2, but must be"),
    "workers": (lambda tmp: h5zarr.verify(_references(tmp), workers=0), ValueError, "workers is 0, but must be"),
    "at_once": (lambda tmp: list(h5zarr.translate_many([OCEAN], at_once=0)), ValueError, "at_once is 0, but must be"),
    "path": (lambda tmp: h5zarr.inspect(OCEAN, path="/none").lines(), ValueError, "nothing matches /none"),
    "format": (lambda tmp: h5zarr.index(OCEAN, tmp / "out", format="xml"), ValueError, "format is 'xml', but must be"),
    "protocol": (lambda tmp: h5zarr.translate("nosuch://a/b"), ValueError, "fsspec does not know this protocol"),
    "no file": (lambda tmp: h5zarr.check([]), ValueError, "sources is empty"),
    "no index": (lambda tmp: h5zarr.status(tmp), FileNotFoundError, "no index"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_value_and_type_errors(name: str, tmp_path: Path) -> None:
    call, kind, what = WRONG[name]
    with pytest.raises(kind, match=what):
        call(tmp_path)


def _references(directory: Path) -> Path:
    h5zarr.translate(OCEAN, directory / "refs.json")
    return directory / "refs.json"


OUTPUTS = [
    ("none/refs.json", FileNotFoundError, "its directory does not exist"),
    ("file/refs.json", FileNotFoundError, "a part of this path is a file"),
    ("x" * 300 + ".json", ValueError, "too long"),
]


@pytest.mark.parametrize(("name", "kind", "what"), OUTPUTS)
@pytest.mark.parametrize("command", ["translate", "convert"])
def test_outputs_that_cannot_be_written(command: str, name: str, kind: type, what: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    source = OCEAN if command == "translate" else _references(tmp_path)
    with pytest.raises(kind, match=what) as caught:
        getattr(h5zarr, command)(source, tmp_path / name)
    assert isinstance(caught.value, H5ZarrError)


KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, H5ZarrError)]


@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_shown_and_sent_to_other_processes_as_they_are(kind: type[H5ZarrError]) -> None:
    output = issubclass(kind, errors.OutputError)
    error = kind("a.nc", "it is broken", remedy="Mend it.") if output else kind("a.nc: it is broken", remedy="Mend it.")
    if isinstance(error, OSError):
        error.filename = "a.nc"
    received = pickle.loads(pickle.dumps(error.naming("here")))
    for one in (error, received):
        assert str(one) == "here: a.nc: it is broken"
        assert repr(one) == f"{kind.__name__}('here: a.nc: it is broken')"
        assert (one.remedy, one.__notes__) == ("Mend it.", ["Mend it."])
        assert getattr(one, "filename", "a.nc") == "a.nc"
        assert vars(one) == vars(error)


# --- time


def test_a_server_that_hangs_costs_the_stated_time_over_all_attempts(server: RangeServer) -> None:
    server.set_faults(Faults(hang=frozenset(range(1, 100))))
    started = time.monotonic()
    with pytest.raises(TimeoutError, match="no answer within 2 seconds"):
        h5zarr.inspect(server.url("/ocean.nc"), network={"timeout_seconds": 2, "attempts": 20})
    # Twenty attempts of two seconds each would be forty. The bound leaves room for a busy machine.
    assert time.monotonic() - started < 20
    assert len(server.counts.gets) == 20


def test_a_server_that_fails_costs_the_stated_time_over_all_attempts(server: RangeServer) -> None:
    server.set_faults(Faults(every=503))
    started = time.monotonic()
    with pytest.raises(OSError, match="HTTP 503"):
        h5zarr.inspect(server.url("/ocean.nc"), network={"timeout_seconds": 1, "attempts": 6})
    # The usual pauses would take 0.1 + 0.4 + 1.6 + 6.4 + 25.6 seconds.
    assert time.monotonic() - started < 20
    assert len(server.counts.urls) == 6


def test_an_answer_that_has_begun_may_take_all_of_the_time(server: RangeServer) -> None:
    server.set_faults(Faults(trickle=frozenset({1})))
    server.trickle_seconds = 0.6
    found = h5zarr.inspect(server.url("/ocean.nc"), network={"timeout_seconds": 2, "attempts": 20})
    assert not found.problems
    assert len(server.counts.gets) == 1


def test_the_message_names_the_option_as_it_is_typed(server: RangeServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.set_faults(Faults(hang=frozenset(range(1, 100))))
    words = ["--network", "timeout_seconds=0.2", "--network", "attempts=1"]
    assert main(["inspect", server.url("/ocean.nc"), *words]) == 2
    assert capsys.readouterr().err == (
        f"h5zarr: {server.url('/ocean.nc')}: no answer within 0.2 seconds\n"
        "  Try again, or allow more time: --network timeout_seconds=0.4.\n"
    )

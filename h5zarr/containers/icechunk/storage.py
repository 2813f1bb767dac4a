"""The location of a repository, and how Icechunk accesses it and the referenced files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from h5zarr.errors import OutputError
from h5zarr.io.failure import describe_failure, source_error
from h5zarr.io.location import Location
from h5zarr.io.patience import finish_within
from h5zarr.io.protocols import protocol_of
from h5zarr.packages import missing

T = TypeVar("T")

_MARK = "icechunk+"
_FORMS = "Give icechunk+file:///directory or icechunk+s3://bucket/prefix."
# fsspec's name of an option, and Icechunk's. Icechunk's names are accepted, too.
_NAMES = {
    "anon": "anonymous",
    "key": "access_key_id",
    "secret": "secret_access_key",
    "token": "session_token",
    "region_name": "region",
    "requester_pays": "requester_pays",
    "endpoint_url": "endpoint_url",
    "allow_http": "allow_http",
    "force_path_style": "force_path_style",
}
_OPTIONS = frozenset(_NAMES.values())
_LOGS, _NO_LOGS = "ICECHUNK_LOG", "ICECHUNK_NO_LOGS"
_SILENT: list[bool] = []  # non-empty if it was imported so
_OF_FSSPEC = ("anon", "key", "secret", "token", "endpoint_url", "requester_pays")
_OF_CONTAINERS = ("region", "endpoint_url", "allow_http", "anonymous", "force_path_style", "requester_pays")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The location of a repository: a directory, or a prefix in a bucket. `shown` is safe to show."""

    shown: str
    directory: str | None = None
    bucket: str = ""
    prefix: str = ""


def find_place(location: Location) -> Place:
    """Return the place that a location such as icechunk+file:///directory names. Raises OutputError for any other."""
    inner, shown = location.without_mark(_MARK), str(location)
    protocol = protocol_of(inner.text)
    if "://" not in inner.text or protocol not in ("file", "local", "s3", "s3a"):
        raise OutputError(shown, "this is not a location for an Icechunk repository", remedy=_FORMS)
    if protocol in ("file", "local"):
        if not inner.path or "\0" in inner.path:
            raise OutputError(shown, "this is not a directory name", remedy=_FORMS)
        return Place(shown=shown, directory=os.path.realpath(inner.path))
    root, path = inner.split_root()
    bucket = root.partition("://")[2]
    if not bucket or "@" in bucket:
        raise OutputError(shown, "this is not a bucket name", remedy=_FORMS)
    return Place(shown=shown, bucket=bucket, prefix=(path + inner.query).strip("/"))


def load_icechunk(shown: str) -> Any:
    """Return the package. Raises PackageMissing if it is not installed.

    It is imported with logging off, unless it was already imported or the user has asked for logs: Icechunk 1 logs each
    reference it gets, in case of an error, and then takes several times as long.
    """
    is_first = "icechunk" not in sys.modules and not {_LOGS, _NO_LOGS} & os.environ.keys()
    if is_first:
        os.environ[_NO_LOGS] = "1"
    try:
        import icechunk
    except ImportError:
        raise missing("icechunk", "an Icechunk repository", place=shown) from None
    finally:
        if is_first:
            del os.environ[_NO_LOGS]
            _SILENT.append(True)
    return icechunk


def is_silent() -> bool:
    """Return whether Icechunk was imported with logging off."""
    return bool(_SILENT) or _NO_LOGS in os.environ


def check_place(location: Location, storage_options: Mapping[str, Any] | None = None) -> None:
    """Raise OutputError if no repository can be written there, before anything is read."""
    place = find_place(location)
    load_icechunk(place.shown)
    _check_options(place, storage_options or {})


def open_storage(place: Place, storage_options: Mapping[str, Any], directory: str | None = None) -> Any:
    """Return Icechunk's storage at a location. `directory` replaces that of the location."""
    icechunk = load_icechunk(place.shown)
    options = _check_options(place, storage_options)
    if place.directory is not None:
        return icechunk.local_filesystem_storage(directory or place.directory)
    if not options.keys() & {"anonymous", "access_key_id"}:
        options["from_env"] = True
    return icechunk.s3_storage(bucket=place.bucket, prefix=place.prefix or None, **options)


def open_to_read(place: Place, storage_options: Mapping[str, Any]) -> Any:
    """Return Icechunk's storage at a location, without the options that are only for referenced files."""
    known = {name: value for name, value in _options_of(storage_options).items() if name in _OPTIONS}
    return open_storage(place, {} if place.directory is not None else known)


def ask(place: Place, timeout_seconds: float, act: Callable[[], T]) -> T:
    """Return the result of `act`, a call of Icechunk. Raises SourceTimeout if the server of the place does not answer.

    Icechunk 1 waits without a limit.
    """
    if place.directory is not None:
        return act()
    try:
        return finish_within(act, timeout_seconds)
    except TimeoutError as error:
        late = describe_failure(error, timeout_seconds)
    raise source_error(place.shown, late)


@contextmanager
def quiet(place: Place) -> Iterator[None]:
    """Suppress Icechunk's warning on stdout that local repositories have no locks, unless logs are wanted."""
    icechunk = load_icechunk(place.shown)
    if place.directory is None or is_silent() or "ICECHUNK_LOG" in os.environ:
        yield
        return
    icechunk.set_logs_filter("error")
    try:
        yield
    finally:
        icechunk.set_logs_filter(None)


def fsspec_options(storage_options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options for the files of a repository under fsspec's names, translated from Icechunk's."""
    options = _options_of(storage_options)
    names = {theirs: ours for ours, theirs in _NAMES.items() if ours in _OF_FSSPEC}
    found = {names[name]: value for name, value in options.items() if name in names}
    return {**found, "client_kwargs": {"region_name": options["region"]}} if "region" in options else found


def _check_options(place: Place, storage_options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options under Icechunk's names. Raises OutputError for unknown ones."""
    options = _options_of(storage_options)
    known = _OPTIONS if place.directory is None else frozenset()
    if unknown := sorted(options.keys() - known):
        remedy = f"Known options: {', '.join(sorted({*_NAMES, *_OPTIONS}))}." if known else "Omit them."
        raise OutputError(place.shown, f"Icechunk has no option {', '.join(unknown)} here", remedy=remedy)
    return options


def _options_of(storage_options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an fsspec file system under Icechunk's names, and what they imply."""
    given = dict(storage_options)
    inner = given.pop("client_kwargs", None)
    given = {**(inner if isinstance(inner, Mapping) else {}), **given}
    options = {_NAMES.get(name, name): value for name, value in given.items() if value is not None}
    if not options.get("anonymous", True):
        del options["anonymous"]
    if endpoint := options.get("endpoint_url"):
        options.setdefault("allow_http", str(endpoint).startswith("http://"))
        options.setdefault("force_path_style", True)  # servers other than Amazon's have no host per bucket
    return options


def container_store(prefix: str, source_options: Mapping[str, Any]) -> Any:
    """Return how Icechunk reads a prefix. The repository stores it, so it contains no secrets."""
    import icechunk

    if prefix.startswith("file://"):
        return icechunk.local_filesystem_store(prefix.removeprefix("file://"))
    if prefix.startswith("gs://"):
        return icechunk.gcs_store({})
    if prefix.startswith("s3://"):
        options = {name: value for name, value in _options_of(source_options).items() if name in _OF_CONTAINERS}
        return icechunk.s3_store(**options, s3_compatible="endpoint_url" in options)
    return icechunk.http_store({"allow_http": "true"} if prefix.startswith("http://") else {})


def options_of_containers(config: Any) -> dict[str, Any]:
    """Return how to access referenced files on S3, as fsspec options, if all containers agree."""
    found = []
    for prefix, container in (config.virtual_chunk_containers or {}).items():
        settings = getattr(container.store, "_0", None)
        if prefix.startswith("s3://"):
            known = {name: getattr(settings, name, None) for name in ("endpoint_url", "region", "anonymous")}
            found.append(fsspec_options({name: value for name, value in known.items() if value}))
    return found[0] if found and all(one == found[0] for one in found) else {}

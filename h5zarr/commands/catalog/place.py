"""The directory of an index, local or remote. Its small files are written atomically."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from h5zarr.containers.beside import new_name_beside
from h5zarr.containers.container import Content, Output
from h5zarr.containers.output import find_filesystem, open_output, or_output_error, told_as
from h5zarr.containers.target import check_target, file_state
from h5zarr.errors import OutputError, SourceError, SourceGone, SourceRefused
from h5zarr.io.failure import or_source_error
from h5zarr.io.location import Location
from h5zarr.io.log import RequestLog
from h5zarr.io.network import USUAL_NETWORK, NetworkPolicy
from h5zarr.io.patience import call_patiently
from h5zarr.io.protocols import PROTOCOL

STATE = "_h5zarr"  # the subdirectory for the index's own files

# What people call their data. No directory for references has such a name, unless the shell expanded a pattern.
DATA_SUFFIXES = (".nc", ".nc3", ".nc4", ".cdf", ".netcdf", ".h5", ".hdf", ".hdf5", ".he5")
Act = Callable[..., Any]
_BEGUN = re.compile(r"\.h5zarr-[0-9a-f]{16}\.tmp")  # temporary names of files being written


class Place:
    """A directory at a path or URL. Names in it separate their parts with "/".

    `shown` is its URL without secrets. `network` bounds how long a server may take to answer. Raises OutputError if
    writing fails, and SourceError if reading from a remote directory fails.
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        storage_options: Mapping[str, Any] | None = None,
        network: NetworkPolicy = USUAL_NETWORK,
    ) -> None:
        text = os.fspath(url)
        self.url = text.rstrip("/") or text
        location = Location.parse(self.url)
        self.shown = str(location)
        self.storage_options = dict(storage_options or {})
        self.network = network
        self._path = None if location.path is None else location.absolute()

    @property
    def is_local(self) -> bool:
        return self._path is not None

    def locate(self, name: str) -> str:
        """Return the path or URL of a name in this directory."""
        return f"{self.url}/{name}" if self._path is None else os.path.join(self._path, *name.split("/"))

    def name_of(self, url: str) -> str | None:
        """Return the name of a path or URL in this directory; None if it is elsewhere."""
        if self._path is None or PROTOCOL.match(url):
            return url.removeprefix(f"{self.url}/") if url.startswith(f"{self.url}/") else None
        path, root = os.path.abspath(url), os.path.join(self._path, "")
        return path.removeprefix(root).replace(os.sep, "/") if path.startswith(root) else None

    def prepare(self, name: str) -> str:
        """Return the path or URL for writing this name, after creating its parent directories."""
        place = self.locate(name)
        if self._path is not None:
            with told_as(f"{self.shown}/{name}"):
                os.makedirs(os.path.dirname(place), exist_ok=True)
        return place

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist."""
        if self._path is not None:
            return self._read_local(name)

        def read(filesystem: Any, path: str) -> bytes:
            from h5zarr.io.fetch import fetch_whole

            return fetch_whole(filesystem, path, self.network, RequestLog())

        content: bytes | None = self._read_remotely(name, read)
        return content

    def _read_local(self, name: str) -> bytes | None:
        try:
            with open(self.locate(name), "rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            kind = SourceRefused if isinstance(error, PermissionError) else SourceError
            what = f"{self.shown}/{name}: this cannot be read ({error.strerror or type(error).__name__})"
            raise kind(what, remedy="Check the permissions of the file and its directory.") from None

    def write(self, name: str, content: bytes) -> None:
        """Write or replace a file."""
        location = Location.parse(self.prepare(name))
        with open_output(location, self.storage_options, network=self.network) as sink:
            sink.write(content)

    def check_own(self, name: str) -> None:
        """Raise OutputError if a file that is always the index's own, even when damaged, is an HDF5 or netCDF file."""
        location = Location.parse(self.locate(name))
        state = file_state(location, self.storage_options, lambda head, read_all: Content.OWN, self.network)
        check_target(Output(location=location, overwrite=True), state)

    def create(self, name: str, content: bytes) -> bool:
        """Write a new file and return True; return False if the name already exists."""
        if self._path is not None:
            return self._create_local(name, content)

        def create(act: Act, path: str) -> bool:
            try:
                act("pipe_file", path, content, mode="create")
            except FileExistsError:
                return False
            except TypeError:  # older fsspec file systems have no exclusive mode
                if act("exists", path):
                    return False
                act("pipe_file", path, content)
            return True

        is_created = self._remotely(name, create)
        if is_created is None:  # not even the bucket exists
            what = "no such bucket or directory"
            raise OutputError(f"{self.shown}/{name}", what, remedy="Create it first.")
        return bool(is_created)

    def _create_local(self, name: str, content: bytes) -> bool:
        """Create a file that is complete from the start: another run may read it at once."""
        path = self.prepare(name)
        beside = new_name_beside(path)
        with told_as(f"{self.shown}/{name}"):
            with open(beside, "xb") as file:
                file.write(content)
            try:
                os.link(beside, path)
            except (FileExistsError, FileNotFoundError):  # FileNotFoundError: another run has just cleaned up
                return False
            finally:
                with suppress(FileNotFoundError):
                    os.remove(beside)
        return True

    def remove(self, name: str) -> None:
        """Remove a file, or a directory and its contents. Does nothing if it does not exist."""
        if self._path is not None:
            with told_as(f"{self.shown}/{name}"):
                _remove_local(self.locate(name))
            return

        def remove(act: Act, path: str) -> None:
            # Not with `rm`, which treats brackets in a name as a pattern and removes every match.
            act("invalidate_cache")
            for found in act("find", path):
                with suppress(FileNotFoundError):
                    act("rm_file", found)

        self._remotely(name, remove)

    def sweep(self, below: str = "") -> None:
        """Remove temporary files below a directory, left by runs that were killed."""
        if self._path is None:
            return  # remote writes leave no temporary files
        for above, directories, files in os.walk(self.locate(below) if below else self._path):
            for name in (*directories, *files):
                if _BEGUN.fullmatch(name):
                    with suppress(OSError):  # a leftover file does no harm
                        _remove_local(os.path.join(above, name))

    def names(self, below: str = "") -> list[str]:
        """Return the names of all files, or of the files below a directory."""
        if self._path is not None:
            root = self.locate(below) if below else self._path
            found = [os.path.join(above, name) for above, _, files in os.walk(root) for name in files]
            return sorted(os.path.relpath(path, self._path).replace(os.sep, "/") for path in found)

        def find(filesystem: Any, path: str) -> list[str]:
            filesystem.invalidate_cache()
            root = path[: len(path) - len(below)].rstrip("/") if below else path.rstrip("/")
            found = call_patiently(filesystem, "find", path, seconds=self.network.timeout_seconds)
            return sorted(name[len(root) + 1 :] for name in found if len(name) > len(path.rstrip("/")))

        return self._read_remotely(below, find, self.shown) or []

    def _read_remotely(self, name: str, act: Callable[[Any, str], Any], shown: str = "") -> Any:
        """Return the result of `act(filesystem, path)`, which only reads; None if the file does not exist.

        Errors call it `shown`, if that is given.
        """
        from h5zarr.io.filesystems import shared_filesystem

        location = Location.parse(self.locate(name) if name else self.url)

        def acted() -> Any:
            filesystem, path = shared_filesystem(location.for_fsspec(), self.storage_options)
            return act(filesystem, path)

        try:
            return or_source_error(shown or str(location), self.network.timeout_seconds, acted)
        except SourceGone:
            return None

    def _remotely(self, name: str, do: Callable[[Act, str], Any]) -> Any:
        """Return the result of `do(act, path)`, or None if the file does not exist. `act` calls a method by name."""
        shown = f"{self.shown}/{name}"
        location = Location.parse(self.locate(name) if name else self.url)
        filesystem, path = find_filesystem(location, self.storage_options, shown)

        def done() -> Any:
            act = partial(call_patiently, filesystem, seconds=self.network.timeout_seconds)
            with suppress(FileNotFoundError):
                return do(act, path)
            return None

        return or_output_error(done, shown, self.network.timeout_seconds)


def check_directory(place: Place) -> None:
    """Raise OutputError unless a place can be the directory of an index: the last argument may be a source."""
    path = Location.parse(place.url).path
    if path is not None and os.path.isfile(path):
        what = "this is a file, but an index is written to a directory"
    elif place.url.lower().endswith(DATA_SUFFIXES) and (path is None or not os.path.isdir(path)):
        what = "this is the name of a data file, but an index is written to a directory"
    else:
        return
    raise OutputError(place.shown, what, remedy="Give the directory for the references after the sources.")


def _remove_local(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        import shutil

        shutil.rmtree(path)
        return
    with suppress(FileNotFoundError):
        os.remove(path)

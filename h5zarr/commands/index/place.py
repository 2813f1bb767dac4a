"""The directory of an index, local or remote. Its small files are written atomically."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from h5zarr.containers.output import find_filesystem, new_name_beside, open_output, or_output_error, told_as
from h5zarr.errors import OutputError
from h5zarr.io.location import Location
from h5zarr.io.protocols import PROTOCOL

STATE = "_h5zarr"  # the subdirectory for the index's own files

_BEGUN = re.compile(r"\.h5zarr-[0-9a-f]{16}\.tmp")  # temporary names of files being written


class Place:
    """A directory at a path or URL. Names in it separate their parts with "/".

    `shown` is its URL without secrets. Raises OutputError if an operation fails.
    """

    def __init__(self, url: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> None:
        text = os.fspath(url)
        self.url = text.rstrip("/") or text
        location = Location.parse(self.url)
        self.shown = str(location)
        self.storage_options = dict(storage_options or {})
        self._path = None if location.path is None else location.absolute()

    @property
    def is_local(self) -> bool:
        return self._path is not None

    def locate(self, name: str) -> str:
        """Return the path or URL of a name in this directory."""
        return f"{self.url}/{name}" if self._path is None else os.path.join(self._path, *name.split("/"))

    def holds(self, url: str) -> bool:
        """Return whether a path or URL is in this directory."""
        if self._path is None or PROTOCOL.match(url):
            return url.startswith(f"{self.url}/")
        return os.path.abspath(url).startswith(os.path.join(self._path, ""))

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
            with told_as(f"{self.shown}/{name}"):
                try:
                    with open(self.locate(name), "rb") as file:
                        return file.read()
                except FileNotFoundError:
                    return None
        content: bytes | None = self._remotely(name, lambda filesystem, path: filesystem.cat_file(path))
        return content

    def write(self, name: str, content: bytes) -> None:
        """Write or replace a file."""
        place = self.prepare(name)
        with open_output(place, self.storage_options) as sink:
            sink.write(content)

    def create(self, name: str, content: bytes) -> bool:
        """Write a new file and return True; return False if the name already exists."""
        if self._path is not None:
            return self._create_local(name, content)

        def create(filesystem: Any, path: str) -> bool:
            try:
                filesystem.pipe_file(path, content, mode="create")
            except FileExistsError:
                return False
            except TypeError:  # older fsspec file systems have no exclusive mode
                if filesystem.exists(path):
                    return False
                filesystem.pipe_file(path, content)
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

        def remove(filesystem: Any, path: str) -> None:
            # Not with `rm`, which treats brackets in a name as a pattern and removes every match.
            filesystem.invalidate_cache()
            for found in filesystem.find(path):
                with suppress(FileNotFoundError):
                    filesystem.rm_file(found)

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
            return sorted(name[len(root) + 1 :] for name in filesystem.find(path) if len(name) > len(path.rstrip("/")))

        return self._remotely(below, find) or []

    def _remotely(self, name: str, act: Callable[[Any, str], Any]) -> Any:
        """Return the result of `act(filesystem, path)`, or None if the file does not exist."""
        shown = f"{self.shown}/{name}"
        filesystem, path = find_filesystem(self.locate(name) if name else self.url, self.storage_options, shown)

        def acted() -> Any:
            with suppress(FileNotFoundError):
                return act(filesystem, path)
            return None

        return or_output_error(acted, shown)


def _remove_local(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        import shutil

        shutil.rmtree(path)
        return
    with suppress(FileNotFoundError):
        os.remove(path)

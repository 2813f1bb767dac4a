"""The directory of an index, local or remote: small files, whole or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from h5zarr.errors import OutputError
from h5zarr.io.grammar import PROTOCOL
from h5zarr.io.url import display_url, find_local_path
from h5zarr.refs.output import find_filesystem, new_name_beside, open_output, or_output_error, told_as

STATE = "_h5zarr"  # the directory below it that is the index's own

_BEGUN = re.compile(r"\.h5zarr-[0-9a-f]{16}\.tmp")  # what is written beside its place is called so until it is whole


class Place:
    """A directory at a path or URL, in which names have "/" between their parts.

    `shown` is its URL without secrets. Raises OutputError for whatever cannot be done.
    """

    def __init__(self, url: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> None:
        text = os.fspath(url)
        self.url = text.rstrip("/") or text
        self.shown = display_url(self.url)
        self.storage_options = dict(storage_options or {})
        self._path = find_local_path(self.url)
        if self._path is not None:
            self._path = os.path.abspath(self._path)

    @property
    def is_local(self) -> bool:
        return self._path is not None

    def locate(self, name: str) -> str:
        """Return the path or URL of what has this name here."""
        return f"{self.url}/{name}" if self._path is None else os.path.join(self._path, *name.split("/"))

    def holds(self, url: str) -> bool:
        """Return whether a path or URL is that of something in here."""
        if self._path is None or PROTOCOL.match(url):
            return url.startswith(f"{self.url}/")
        return os.path.abspath(url).startswith(os.path.join(self._path, ""))

    def prepare(self, name: str) -> str:
        """Return the path or URL at which something of this name can be written: the directories above it are there."""
        place = self.locate(name)
        if self._path is not None:
            with told_as(f"{self.shown}/{name}"):
                os.makedirs(os.path.dirname(place), exist_ok=True)
        return place

    def read(self, name: str) -> bytes | None:
        """Return what is in a file; None where there is none."""
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
        """Write a file, or replace it."""
        place = self.prepare(name)
        with open_output(place, self.storage_options) as sink:
            sink.write(content)

    def create(self, name: str, content: bytes) -> bool:
        """Write a file, and return True; or return False where there is one of this name already."""
        if self._path is not None:
            return self._create_local(name, content)

        def create(filesystem: Any, path: str) -> bool:
            try:
                filesystem.pipe_file(path, content, mode="create")
            except FileExistsError:
                return False
            except TypeError:  # an older version of a file system, which cannot tell in one step
                if filesystem.exists(path):
                    return False
                filesystem.pipe_file(path, content)
            return True

        is_created = self._remotely(name, create)
        if is_created is None:  # there is not even the bucket
            what = "there is no such bucket or directory"
            raise OutputError(f"{self.shown}/{name}", what, remedy="Create it first.")
        return bool(is_created)

    def _create_local(self, name: str, content: bytes) -> bool:
        """Create a file that is complete from the beginning: somebody may look as soon as it is there."""
        path = self.prepare(name)
        beside = new_name_beside(path)
        with told_as(f"{self.shown}/{name}"):
            with open(beside, "xb") as file:
                file.write(content)
            try:
                os.link(beside, path)
            except (FileExistsError, FileNotFoundError):  # or somebody has cleaned up in this moment
                return False
            finally:
                with suppress(FileNotFoundError):
                    os.remove(beside)
        return True

    def remove(self, name: str) -> None:
        """Remove a file, or a directory with all that is in it; nothing where there is none."""
        if self._path is not None:
            with told_as(f"{self.shown}/{name}"):
                _remove_local(self.locate(name))
            return

        def remove(filesystem: Any, path: str) -> None:
            # Not by rm, which takes a name with brackets in it for a pattern, and removes what matches that.
            filesystem.invalidate_cache()
            for found in filesystem.find(path):
                with suppress(FileNotFoundError):
                    filesystem.rm_file(found)

        self._remotely(name, remove)

    def sweep(self, below: str = "") -> None:
        """Remove what was begun below a directory and never ended, by runs that were killed."""
        if self._path is None:
            return  # what goes elsewhere is not begun there
        for above, directories, files in os.walk(self.locate(below) if below else self._path):
            for name in (*directories, *files):
                if _BEGUN.fullmatch(name):
                    with suppress(OSError):  # it is in nobody's way
                        _remove_local(os.path.join(above, name))

    def names(self, below: str = "") -> list[str]:
        """Return the names of all files, or of those below a directory."""
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
        """Return what `act` returns, given the file system and the path; None where there is no such file."""
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

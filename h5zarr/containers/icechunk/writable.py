"""Open a repository to write to it, and turn the exceptions of Icechunk into errors.

A new local repository is created under a temporary name beside its target and then renamed.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from h5zarr.containers.container import Output
from h5zarr.containers.icechunk.storage import Place, ask, load_icechunk, open_storage
from h5zarr.containers.output import output_timeout
from h5zarr.errors import H5ZarrError, OutputChanged, OutputError, SourceTimeout

MAIN = "main"


@contextmanager
def opened(place: Place, output: Output) -> Iterator[Any]:
    """Yield the repository at a location. A new local one appears when the context ends without an exception."""
    icechunk, storage_options = load_icechunk(place.shown), output.storage_options or {}
    if place.directory is not None and not _is_taken(place.directory, place.shown):
        with _made_beside(place.directory, place.shown) as beside:
            with icechunk_errors(place):
                repository = icechunk.Repository.create(open_storage(place, storage_options, beside))
            yield repository
        return
    with icechunk_errors(place):
        storage = open_storage(place, storage_options)
        is_local = place.directory is not None
        opener = icechunk.Repository.open if is_local else icechunk.Repository.open_or_create
        repository = ask(place, output.network.timeout_seconds, lambda: opener(storage))
    yield repository


def _is_taken(directory: str, shown: str) -> bool:
    """Return whether a directory has content. Raises OutputError for a file."""
    try:
        return bool(os.listdir(directory))
    except FileNotFoundError:
        return False
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OutputError(shown, f"this cannot be the directory of a repository ({reason})") from None


@contextmanager
def _made_beside(directory: str, shown: str) -> Iterator[str]:
    """Yield a new directory that replaces `directory` when the context ends without an exception."""
    beside = os.path.join(os.path.dirname(directory), f".h5zarr-{secrets.token_hex(8)}.tmp")
    try:
        os.mkdir(beside)
    except OSError as error:
        what = f"no directory can be created there ({error.strerror or type(error).__name__})"
        raise OutputError(shown, what, remedy="Create its parent directory first, and check the permissions.") from None
    try:
        yield beside
        with suppress(FileNotFoundError):
            os.rmdir(directory)  # it was empty
        os.rename(beside, directory)
    except H5ZarrError:
        raise
    except OSError as error:
        what = f"could not be moved there ({error.strerror or type(error).__name__})"
        raise OutputError(shown, what) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def first_snapshot(repository: Any) -> str:
    """Return the id of the empty snapshot with which every repository starts."""
    *_, root = repository.ancestry(branch=MAIN)
    return str(root.id)


def do_nothing() -> None:
    pass


@contextmanager
def on_branch(repository: Any, branch: str, place: Place) -> Iterator[None]:
    """Ensure that a branch exists. A new branch starts empty, and is removed after an exception."""
    with icechunk_errors(place):
        is_new = branch not in repository.list_branches()
        if is_new:
            repository.create_branch(branch, first_snapshot(repository))
    try:
        yield
    except BaseException:
        if is_new:
            with suppress(Exception):
                repository.delete_branch(branch)
        raise


@contextmanager
def icechunk_errors(place: Place) -> Iterator[None]:
    """Turn Icechunk's exceptions into an OutputError, which does not chain them."""
    failure: OutputError | None = None
    try:
        yield
    except SourceTimeout as error:
        failure = output_timeout(error, place.shown)
    except H5ZarrError:
        raise
    except Exception as error:
        failure = _describe(error, place)
    if failure is not None:
        raise failure


def _describe(error: Exception, place: Place) -> OutputError:
    """Return what went wrong; for a remote repository without the exception's text, which may quote a key."""
    name = type(error).__name__
    if name in ("ConflictError", "AlreadyExistsError") or "branch update conflict" in str(error):
        what = "another writer has committed to the branch in the meantime"
        return OutputChanged(place.shown, what)
    if place.directory is None:
        remedy = "Check the URL, the credentials and output_options=, then try again."
        return OutputError(place.shown, f"Icechunk could not write there ({name})", remedy=remedy)
    reason = next((line for line in str(error).splitlines() if line.strip(" x|`->")), name).strip(" x|`->")
    remedy = "Give a directory that is new, empty, or a repository that this version of Icechunk opens."
    return OutputError(place.shown, f"Icechunk could not write there: {reason}", remedy=remedy)

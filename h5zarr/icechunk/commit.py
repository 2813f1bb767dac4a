"""What a user says of a snapshot, and which containers take it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from h5zarr.errors import OutputError
from h5zarr.icechunk.storage import is_icechunk
from h5zarr.io.url import display_url


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """How a snapshot gets into an Icechunk repository: onto which branch, and what is said of it."""

    branch: str = "main"
    message: str | None = None


def check_form(out: str | os.PathLike[str], zarr_format: int, commit: Commit | None) -> None:
    """Raise OutputError where the container at `out` cannot be what is wanted."""
    shown = display_url(os.fspath(out))
    if is_icechunk(out) and zarr_format != 3:
        raise OutputError(shown, "an Icechunk repository holds Zarr version 3", remedy="Do without --zarr-format 2.")
    if not is_icechunk(out) and commit is not None:
        what = "only an Icechunk repository has branches and messages"
        raise OutputError(shown, what, remedy="Do without --branch and --message.")

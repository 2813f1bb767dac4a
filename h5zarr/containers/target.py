"""What an output would replace, and whether it may.

Output never destroys data. References are replaced by references. Anything else is replaced only if the user asks for
it, and an HDF5 or netCDF file never is. Content decides, not names.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from h5zarr.containers.container import ABSENT, Commit, Content, Output, State
from h5zarr.containers.output import find_filesystem, output_timeout
from h5zarr.errors import OutputChanged, OutputExists, SourceError, SourceGone, SourceTimeout
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from h5zarr.io.network import USUAL_NETWORK, NetworkPolicy
from h5zarr.io.source import Source, open_source
from h5zarr.io.span import Span

Recognise = Callable[[bytes, Callable[[], bytes]], Content]
"""Called with the first bytes of a file, and a function that returns its whole content."""

_HDF5 = b"\x89HDF\r\n\x1a\n"
_CLASSIC = (b"CDF\x01", b"CDF\x02", b"CDF\x05")
_LEAST_USER_BLOCK = 512
_OTHER_NAME = "Give another name for the output."
_HEAD_NBYTES = 1 << 18  # zstd yields nothing before its first block of 128 KiB is complete
_BRANCH_REMEDY = (
    "Write to another branch=NAME, or replace the content of the branch with overwrite=True: its history keeps the "
    "earlier versions. h5zarr combine joins all files of a dataset at once."
)


def check_target(output: Output, state: State, sources: Sequence[str] | None = None, *, is_all: bool = False) -> None:
    """Raise OutputExists unless the content of a target may be replaced.

    `sources` are the files that the new references are made from, the main one first. None: they are not known yet.
    `is_all`: these are all of them, not only the main one. Raises OutputChanged if the output is to replace another
    state than this one.
    """
    if output.replaces is not None:
        if state.identity != output.replaces:
            raise OutputChanged(output.shown, "somebody else has written there in the meantime")
        return
    if state.content is Content.OTHER and not state.is_replaceable:
        raise OutputExists(output.shown, f"this is {state.what}: h5zarr never replaces it", remedy=_OTHER_NAME)
    if output.overwrite or state.content is Content.NOTHING:
        return
    if state.content is Content.UNKNOWN:
        remedy = "Check output_options=, or write anyway with overwrite=True."
        raise OutputExists(output.shown, f"cannot tell what the output would replace: {state.what}", remedy=remedy)
    if state.sources is not None:
        _check_branch(output, state, sources, is_all=is_all)
    elif state.content is Content.OTHER:
        remedy = "Give another name for the output, or replace this with overwrite=True."
        raise OutputExists(output.shown, f"this is {state.what}", remedy=remedy)


def _check_branch(output: Output, state: State, sources: Sequence[str] | None, *, is_all: bool) -> None:
    """Raise OutputExists unless a branch holds only references that the new ones replace: to the same main file."""
    branch, held = (output.commit or Commit()).branch, state.sources or ()
    if state.content is Content.OTHER:
        what = f"branch {branch} holds arrays that h5zarr did not write"
    elif sources is None or (sources[:1] and sources[0] in held and (not is_all or set(held) <= set(sources))):
        return
    else:
        what = f"branch {branch} holds references to {_listed(held)}"
    raise OutputExists(output.shown, what, remedy=_BRANCH_REMEDY)


def _listed(urls: Sequence[str]) -> str:
    if not urls:
        return "unknown files"
    shown = str(Location.parse(urls[0]))
    return shown if len(urls) == 1 else f"{shown} and {len(urls) - 1:,} more"


def is_stream(location: Location) -> bool:
    """Return whether the output is standard output, or a pipe, terminal or /dev/null: these hold nothing."""
    if location.text == "-":
        return True
    try:
        mode = 0 if location.path is None else os.stat(location.path).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)


def file_state(
    location: Location,
    storage_options: Mapping[str, Any] | None,
    recognise: Recognise,
    network: NetworkPolicy = USUAL_NETWORK,
) -> State:
    """Return what is at the place of an output that is one file. An empty file counts as nothing.

    Raises OutputTimeout if the server does not answer: writing would only take the same time again.
    """
    if is_stream(location):
        return ABSENT
    if location.path is None:
        find_filesystem(location, storage_options or {})  # raises errors about an output, not about a source
    elif not os.path.exists(location.path):
        return ABSENT
    elif os.path.isdir(location.path):
        return State(Content.OTHER, what="a directory", is_replaceable=False)
    try:
        with open_source(location, Access(storage_options=storage_options or {}, network=network)) as source:
            return _state_of(source, recognise)
    except SourceGone:
        return ABSENT
    except SourceTimeout as error:
        late = error
    except SourceError as error:
        return State(Content.UNKNOWN, what=str(error).removeprefix(f"{location}:").strip())
    raise output_timeout(late, str(location))


def _state_of(source: Source, recognise: Recognise) -> State:
    if source.nbytes == 0:
        return State(Content.NOTHING, source.identity)
    head = _read(source, min(source.nbytes, _HEAD_NBYTES))
    if (data := data_format(source, head)) is not None:
        return State(Content.OTHER, source.identity, what=data, is_replaceable=False)
    content = recognise(head, lambda: _read(source, source.nbytes))
    return State(content, source.identity, what="a file that h5zarr did not write" if content is Content.OTHER else "")


def _read(source: Source, nbytes: int) -> bytes:
    (content,) = source.read_many([Span(0, nbytes)])
    return bytes(content)


def data_format(source: Source, head: bytes) -> str | None:
    """Return "an HDF5 file" or "a netCDF file" if it is one, by the signatures; None otherwise.

    A user block of any power of two, at least 512 bytes, may precede an HDF5 file.
    """
    if head.startswith(_CLASSIC):
        return "a netCDF file"
    places, place = [], 0
    while place + len(_HDF5) <= source.nbytes:
        places.append(place)
        place = max(_LEAST_USER_BLOCK, 2 * place)
    if any(head.startswith(_HDF5, place) for place in places):
        return "an HDF5 file"
    far = [Span(place, len(_HDF5)) for place in places if place + len(_HDF5) > len(head)]
    return "an HDF5 file" if far and _HDF5 in map(bytes, source.read_many(far)) else None

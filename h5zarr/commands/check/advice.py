"""Advice: what makes a file slow or hard to read, and the command that fixes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from h5zarr.commands.check import thresholds as at
from h5zarr.commands.check.commands import Mending, suggest_chunk_shape
from h5zarr.commands.check.variables import CheckedVariable, Verdict
from h5zarr.display import counted, size
from h5zarr.zarr_model.codecs import ELEMENTS_CODEC


@dataclass(frozen=True, slots=True)
class Advice:
    """One possible improvement, of the variable at `path` or, if it is "/", of the whole file.

    `command` fixes it, if there is such a command. It writes another file.
    """

    kind: str
    path: str
    message: str
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataCost:
    """What it cost to read the metadata of a file, and where they are.

    A local file is read as if it were remote. `asked_nbytes` counts the bytes needed, `nbytes` the bytes transferred.
    The needed bytes are in `places` that are far apart; the last one ends at `end`.
    """

    rounds: int
    requests: int
    nbytes: int
    asked_nbytes: int
    places: int
    end: int
    is_paged: bool = False
    user_block_nbytes: int = 0

    def to_json(self) -> dict[str, int | bool]:
        """Return this cost for machines."""
        return {name.replace("nbytes", "bytes"): value for name, value in asdict(self).items()}


def advise_variable(variable: CheckedVariable, mending: Mending) -> Iterator[Advice]:
    """Yield what could be better about a variable."""
    if variable.verdict is Verdict.REFERENCED:
        yield from _advise_chunks(variable, mending)
        yield from _advise_codecs(variable, mending)
    if variable.inlined_nbytes > at.INLINED_NBYTES:
        message = f"{size(variable.inlined_nbytes)} are inlined in the references: everyone who opens them loads these"
        yield Advice("inlined", variable.path, f"{message}; store it with elements of a fixed size, or exclude it")


def advise_file(
    nbytes: int, metadata: MetadataCost, variables: tuple[CheckedVariable, ...], mending: Mending
) -> Iterator[Advice]:
    """Yield what could be better about a file of `nbytes` bytes as a whole."""
    if not mending.is_classic and nbytes > at.WHOLE_NBYTES and metadata.places > at.MANY_PLACES:
        taken = f"{counted(metadata.rounds, 'round')} and {counted(metadata.requests, 'request')}"
        message = f"metadata are scattered over {metadata.places:,} places: reading them takes {taken}"
        yield Advice("scattered metadata", "/", message, mending.gather())
    if metadata.user_block_nbytes > at.USER_BLOCK_NBYTES:
        message = (
            f"the file begins with a user block of {size(metadata.user_block_nbytes)}, which readers fetch for nothing"
        )
        yield Advice("user block", "/", message, mending.drop_user_block())
    count = sum(variable.chunk_count for variable in variables)
    if count > at.MANY_REFERENCES:
        message = f"{count:,} chunks are many for references in JSON, which readers load as a whole; Parquet is better"
        yield Advice("many references", "/", message, mending.as_parquet())


def _advise_chunks(variable: CheckedVariable, mending: Mending) -> Iterator[Advice]:
    path, stored, decoded = variable.path, variable.stored_chunk_nbytes, variable.chunk_nbytes
    whole = variable.shape if variable.has_chunks is False else variable.chunk_shape
    element_nbytes = decoded // max(1, _count(variable.chunk_shape))
    better = suggest_chunk_shape(variable.shape, whole, element_nbytes)
    is_plain = not variable.is_compressed and variable.stored_nbytes >= at.UNCOMPRESSED_NBYTES
    if stored < at.TINY_CHUNK_NBYTES and variable.chunk_count >= at.MANY_TINY_CHUNKS:
        many = f"{variable.chunk_count:,} chunks of {size(stored)}"
        per_gb = f"{variable.requests_per_gb or 0:,.0f} requests for each GB of values"
        message = f"chunks are tiny: {many}, which is {per_gb}"
        yield Advice("tiny chunks", path, message, mending.rechunk(path, better))
    elif decoded > at.HUGE_CHUNK_NBYTES:
        message = f"chunks are huge: reading a single value fetches and decodes {size(decoded)}"
        yield Advice("huge chunks", path, message, mending.rechunk(path, better, compress=is_plain))
    if is_plain and variable.has_chunks is False:
        message = f"contiguous, not compressed: {size(variable.stored_nbytes)} are transferred uncompressed"
        yield Advice("contiguous", path, message, mending.rechunk(path, better, compress=True))
    elif is_plain:
        message = f"not compressed: {size(variable.stored_nbytes)} are transferred uncompressed"
        yield Advice("not compressed", path, message, mending.compress(path))


def _advise_codecs(variable: CheckedVariable, mending: Mending) -> Iterator[Advice]:
    if not variable.own_codecs:
        return
    names = ", ".join(variable.own_codecs)
    needed = f"h5zarr{''.join(f' and {package}' for package in variable.packages)}"
    message = f"needs {names}: Zarr readers without {needed} cannot decode it"
    filters = [name for name in variable.own_codecs if name != ELEMENTS_CODEC]
    yield Advice("codecs", variable.path, message, mending.compress(variable.path) if filters else "")


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count

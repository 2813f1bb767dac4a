"""The options of a translation: from flat values to one frozen value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from h5zarr.commands.translate.selecting import Selection
from h5zarr.encode.inlining import Inlining
from h5zarr.encode.runs import CHUNK_NBYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to translate. `target_url` replaces the source's own URL in the references.

    Arrays without chunks are split into chunks of about `chunk_nbytes`. With `joinable` they stay whole, so that the
    arrays of several files can be joined along an axis: chunks, codecs and fill values then do not depend on the length
    of an array.
    """

    selection: Selection = field(default_factory=Selection)
    inlining: Inlining = field(default_factory=Inlining)
    chunk_nbytes: int = CHUNK_NBYTES
    target_url: str | None = field(default=None, repr=False)  # may be a signed URL
    zarr_format: int = 3
    nz: bool = False
    strict: bool = False
    joinable: bool = False


def make_options(
    *,
    group: str = "/",
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    target_url: str | None = None,
    zarr_format: int = 3,
    nz: bool = False,
    chunk_bytes: int | None = None,
    inline_bytes: int | None = None,
    max_inline_bytes: int | None = None,
    joinable: bool = False,
    strict: bool = False,
) -> Options:
    """Return the options for these values. Raises TypeError or ValueError for an invalid value."""
    if zarr_format not in (2, 3):
        raise ValueError(f"zarr_format is {zarr_format!r}, but must be 2 or 3")
    if not isinstance(group, str):
        raise TypeError(f"group must be a string, not {type(group).__name__}")
    inlining = Inlining() if inline_bytes is None else Inlining.up_to(_nbytes("inline_bytes", inline_bytes))
    if max_inline_bytes is not None:
        inlining = replace(inlining, total_nbytes=_nbytes("max_inline_bytes", max_inline_bytes))
    return Options(
        selection=Selection(group=group, include=several("include", include), exclude=several("exclude", exclude)),
        inlining=inlining,
        chunk_nbytes=CHUNK_NBYTES if chunk_bytes is None else _nbytes("chunk_bytes", chunk_bytes, least=1),
        target_url=target_url,
        zarr_format=zarr_format,
        nz=nz,
        strict=strict,
        joinable=joinable,
    )


def several(name: str, values: Sequence[str]) -> tuple[str, ...]:
    """Return the values of an option that takes several. Rejects a single string, which is a sequence of letters."""
    if isinstance(values, str):
        raise TypeError(f"{name} must be a list of strings, not one string: {name}=[{values!r}]")
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a list of strings, not of {type(value).__name__}")
        if not value.strip("/"):
            raise ValueError(f"{name} has the pattern {value!r}, which matches nothing")
    return tuple(values)


def _nbytes(name: str, value: int, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a number of bytes, not {type(value).__name__}")
    if value < least:
        raise ValueError(f"{name} is {value}, but must be at least {least}")
    return value

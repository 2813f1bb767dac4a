"""The text of a verification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from h5zarr.commands.verify.verified_arrays import Verified
from h5zarr.display import counted, readable

if TYPE_CHECKING:
    from h5zarr.commands.verify.verify import Verification


def difference_lines(found: Verification) -> Iterator[str]:
    """Return everything that differs."""
    if found.changed:
        yield readable(found.changed)
    for one in (*found.groups, *found.arrays):
        yield from (f"{readable(one.path)}: {readable(difference)}" for difference in one.differences)
        if one.error:
            yield f"{readable(one.path)}: {readable(one.error)}"
    yield from (f"{readable(path)}: not in {readable(found.source)}" for path in found.not_found)


def verified_lines(found: Verification) -> Iterator[str]:
    """Return what was compared: a line per array, and a summary. Nothing if the source has changed."""
    if found.changed:
        return
    yield from map(_verified_line, found.arrays)
    chunks = counted(sum(one.compared for one in found.arrays), "chunk")
    counts = ", ".join(verification_counts(found))
    yield f"{counts} · {chunks} compared with {found.library} · {found.seconds:.2f} s"


def verification_counts(found: Verification) -> list[str]:
    """Return the numbers of arrays with each result, as text."""
    wrong = sum(not one.is_right for one in found.arrays)
    skipped = sum(bool(one.skipped) for one in found.arrays)
    parts = [f"{counted(len(found.arrays) - wrong - skipped, 'array')} right", f"{wrong:,} wrong"]
    others = {"not compared": skipped, "not in the file": len(found.not_found)}
    return [*parts, *(f"{count:,} {what}" for what, count in others.items() if count)]


def _verified_line(one: Verified) -> str:
    if one.skipped:
        return f"{readable(one.path)}: values not compared: {readable(one.skipped)}"
    words = "verified" if one.is_right else "differs after"
    return f"{readable(one.path)}: {words} {one.compared:,} of {one.total:,} chunks"

"""The text of a validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from h5zarr.display import counted, readable

if TYPE_CHECKING:
    from h5zarr.commands.validate.validate import Validation


def finding_lines(found: Validation, *, quiet: bool = False, phrase: Callable[[str], str] = str) -> Iterator[str]:
    """Return all findings with their remedies, and what was not checked; only errors if `quiet`."""
    for one in found.errors if quiet else (*found.errors, *found.warnings):
        yield f"{one.level.value}: {readable(one.path)}: {readable(one.message)} [{one.rule}: {one.section}]"
        yield f"  {readable(phrase(one.remedy))}"
    if not quiet:
        for rule in found.not_checked:
            yield f"not checked: {readable(rule.path)}: {rule.rule}: {readable(rule.reason)}"


def validation_summary(found: Validation) -> str:
    """Return the result in one line."""
    rules = f"{counted(len(found.rules), 'rule')} for Zarr version {found.zarr_format}"
    return f"{', '.join(validation_counts(found))} · {rules} in {found.container} · {found.seconds:.2f} s"


def validation_counts(found: Validation) -> list[str]:
    """Return the numbers of findings of each kind, as text."""
    parts = [counted(len(found.errors), "error"), counted(len(found.warnings), "warning")]
    return [*parts, f"{len(found.not_checked):,} not checked"] if found.not_checked else parts

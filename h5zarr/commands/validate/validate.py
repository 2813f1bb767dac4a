"""The validate command: read the raw references, and check them against every rule."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from h5zarr import __version__
from h5zarr.commands.validate.raw import RawReferences
from h5zarr.commands.validate.reading import decode_json, decode_parquet
from h5zarr.commands.validate.rule_table import NZ, RULES
from h5zarr.commands.validate.rules import JSON, PARQUET, Finding, Found, Level, Rule
from h5zarr.commands.validate.validation_text import finding_lines, validation_counts, validation_summary
from h5zarr.containers.container import Container
from h5zarr.containers.parquet.parquet_writing import METADATA
from h5zarr.containers.parquet.reference_directory import open_directory
from h5zarr.containers.registry import container_in, container_of, not_references
from h5zarr.display import summary_repr
from h5zarr.errors import SURPRISES, Unsupported
from h5zarr.io.access import USUAL_ACCESS, Access
from h5zarr.io.location import Location
from h5zarr.io.source import open_source
from h5zarr.io.span import Span
from h5zarr.read.sources import Sources
from h5zarr.zarr_model.hierarchy import Json


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A rule that could not be checked somewhere, and why."""

    path: str
    rule: str
    reason: str

    def to_json(self) -> dict[str, Json]:
        """Return this rule for machines."""
        return {"path": self.path, "rule": self.rule, "reason": self.reason}


@dataclass(slots=True, repr=False)
class Validation:
    """The result of a validation. `str()` is the text that `h5zarr validate` prints.

    Attributes
    ----------
    references
        The references, without secrets in their URL.
    zarr_format
        Their version of Zarr, 2 or 3.
    container
        "json" or "parquet".
    findings
        Every broken rule, with path, message and remedy.
    not_checked
        Rules that could not be checked, and why.
    rules
        Ids of the rules that were checked.
    seconds
        How long it took.

    Examples
    --------
    >>> import h5zarr
    >>> _ = h5zarr.translate("ocean.nc", "ocean.json")
    >>> h5zarr.validate("ocean.json").errors
    []
    """

    references: str
    zarr_format: int
    container: str
    findings: list[Finding] = field(default_factory=list)
    not_checked: list[NotChecked] = field(default_factory=list)
    rules: tuple[str, ...] = ()
    seconds: float = 0.0

    def __repr__(self) -> str:
        return summary_repr("Validation", self.references, *validation_counts(self))

    def __str__(self) -> str:
        return "\n".join((*finding_lines(self), validation_summary(self)))

    @property
    def errors(self) -> list[Finding]:
        """Findings that break a MUST."""
        return [one for one in self.findings if one.level is Level.ERROR]

    @property
    def warnings(self) -> list[Finding]:
        """Findings that break a SHOULD."""
        return [one for one in self.findings if one.level is Level.WARNING]

    @property
    def is_valid(self) -> bool:
        """Whether no MUST is broken."""
        return not self.errors

    def to_json(self) -> dict[str, Json]:
        """Return the report for machines."""
        return {
            "version": __version__,
            "references": self.references,
            "zarr_format": self.zarr_format,
            "container": self.container,
            "valid": self.is_valid,
            "findings": [one.to_json() for one in self.findings],
            "not_checked": [one.to_json() for one in self.not_checked],
            "rules": list(self.rules),
            "seconds": round(self.seconds, 3),
        }


def validate(
    references: str | os.PathLike[str],
    *,
    nz: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    anon: bool = False,
    network: Mapping[str, float] | None = None,
    limits: Mapping[str, int] | None = None,
) -> Validation:
    """Check references, JSON or Parquet, against the rules of Zarr, xarray and the reference format.

    Only the references are read, never the files they refer to.

    Parameters
    ----------
    references
        A path or URL.
    nz
        Also check the rules of NZ-1.0.
    storage_options, anon, network, limits
        How to open them, as in `h5zarr.open_store`.

    Returns
    -------
    Validation
        `is_valid` is True if no rule with MUST is broken; `findings` has every broken rule with path and remedy.

    Raises
    ------
    H5ZarrError
        The references cannot be read.

    Examples
    --------
    >>> import h5zarr
    >>> _ = h5zarr.translate("ocean.nc", "ocean.json")
    >>> h5zarr.validate("ocean.json").is_valid
    True
    """
    started = time.perf_counter()
    location = Location.parse(references)
    access = Access.from_options(storage_options, network, limits, anon=anon)
    result = hold_against(read_raw(location, access), str(location), nz=nz)
    result.seconds = time.perf_counter() - started
    return result


def read_raw(location: Location, access: Access = USUAL_ACCESS) -> RawReferences:
    """Return the raw content of the references at a location, which must be in a container that rules exist for."""
    container = container_of(location)
    if container is not None and container.traits.is_directory:
        return _read_directory(location, access, container)
    with open_source(location, access) as source:
        container = container_in(source)
        if container is None:
            raise not_references(source)
        if container.traits.name != JSON:
            raise _not_validated(location, container)
        what = f"{location}: the references take {source.nbytes:,} bytes"
        access.limits.check("references_nbytes", source.nbytes, what)
        (content,) = source.read_many([Span(0, source.nbytes)])
        return decode_json(bytes(content), str(location))


def _read_directory(location: Location, access: Access, container: Container) -> RawReferences:
    if container.traits.name != PARQUET:
        raise _not_validated(location, container)
    sources = Sources(urls=(), access=access)
    try:
        directory = open_directory(location, sources)
        return decode_parquet(directory.read(METADATA), directory.load, str(location))
    finally:
        sources.close()


def _not_validated(location: Location, container: Container) -> Unsupported:
    found = f"{container.traits.title}, for which h5zarr has no rules"
    return Unsupported(f"{location}: this is {found}", remedy="Give references in JSON or Parquet.")


def hold_against(raw: RawReferences, name: str, *, nz: bool = False) -> Validation:
    """Return the findings of every rule that applies to the file."""
    rules = [rule for rule in RULES.values() if rule.applies_to(raw) and (nz or rule.family != NZ)]
    result = Validation(name, raw.zarr_format, raw.container, rules=tuple(rule.id for rule in rules))
    for rule in rules:
        _apply(rule, raw, result)
    return result


def _apply(rule: Rule, raw: RawReferences, result: Validation) -> None:
    try:
        for one in rule.check(raw):
            if isinstance(one, Found):
                result.findings.append(Finding.of(rule, one))
            else:
                result.not_checked.append(NotChecked(one.path, rule.id, one.reason))
    except SURPRISES as error:  # metadata are untrusted; the other rules still apply
        result.not_checked.append(NotChecked("/", rule.id, f"it could not be applied: {type(error).__name__}"))

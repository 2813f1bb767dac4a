"""The hallway of a validation: references are read as they stand, and held against every rule."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from h5zarr import __version__
from h5zarr.errors import Unsupported
from h5zarr.hdf5.guard import SURPRISES
from h5zarr.hierarchy import Json
from h5zarr.io.fetch_policy import FetchPolicy
from h5zarr.io.source import open_source
from h5zarr.io.span import Span
from h5zarr.io.url import display_url
from h5zarr.read.parquet import is_parquet, open_directory
from h5zarr.read.sources import Sources, options_for
from h5zarr.refs.parquet_writing import METADATA
from h5zarr.refs.reading import is_references
from h5zarr.validating.raw import RawReferences
from h5zarr.validating.reading import decode_json, decode_parquet
from h5zarr.validating.rules import Finding, Found, Level, Rule
from h5zarr.validating.table import NZ, RULES

_SNIFFED_NBYTES = 64


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A rule that could not be checked somewhere, and why."""

    path: str
    rule: str
    reason: str

    def to_json(self) -> dict[str, Json]:
        """Return it for machines."""
        return {"path": self.path, "rule": self.rule, "reason": self.reason}


@dataclass(slots=True)
class Validation:
    """What a validation found: every place where a rule is broken, and every one where that cannot be told.

    `rules` are the ids of those that were checked.
    """

    references: str
    zarr_format: int
    container: str
    findings: list[Finding] = field(default_factory=list)
    not_checked: list[NotChecked] = field(default_factory=list)
    rules: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def errors(self) -> list[Finding]:
        """What breaks a MUST."""
        return [one for one in self.findings if one.level is Level.ERROR]

    @property
    def warnings(self) -> list[Finding]:
        """What breaks a SHOULD."""
        return [one for one in self.findings if one.level is Level.WARNING]

    @property
    def is_valid(self) -> bool:
        """Whether nothing breaks a MUST."""
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
    references: str | os.PathLike[str], nz: bool = False, *, storage_options: Mapping[str, Any] | None = None
) -> Validation:
    """Hold the metadata in a reference file, JSON or Parquet, against the rules of the specifications.

    With `nz`, those of NZ-1.0 are among them. Only the reference file is read, never what it refers to. Raises
    H5ZarrError where it cannot be read.
    """
    started = time.perf_counter()
    url = os.fspath(references)
    result = hold_against(read_raw(url, dict(storage_options or {})), display_url(url), nz=nz)
    result.seconds = time.perf_counter() - started
    return result


def read_raw(url: str, storage_options: dict[str, Any]) -> RawReferences:
    """Return what stands in the reference file at `url`."""
    shown = display_url(url)
    if is_parquet(url):
        sources = Sources(urls=(), storage_options=storage_options, policy=FetchPolicy())
        try:
            directory = open_directory(url, sources)
            return decode_parquet(directory.read(METADATA), directory.load, shown)
        finally:
            sources.close()
    with open_source(url, options_for(url, storage_options)) as source:
        (head,) = source.read_many([Span(0, min(_SNIFFED_NBYTES, source.nbytes))])
        if not is_references(bytes(head)):
            raise Unsupported(f"{shown}: it is no reference file", remedy="Give references in JSON or Parquet.")
        (content,) = source.read_many([Span(0, source.nbytes)])
        return decode_json(bytes(content), shown)


def hold_against(raw: RawReferences, name: str, *, nz: bool = False) -> Validation:
    """Return what every rule that is about such a file finds in it."""
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
    except SURPRISES as error:  # metadata are anybody's: the other rules still have something to say
        result.not_checked.append(NotChecked("/", rule.id, f"it could not be applied: {type(error).__name__}"))

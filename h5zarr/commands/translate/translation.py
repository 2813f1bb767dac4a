"""The result of a translation, and how to write it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from warnings import warn

from h5zarr.commands.translate.fitted_result import FittedResult
from h5zarr.commands.translate.options import Options
from h5zarr.commands.translate.translation_text import count_up, translation_lines
from h5zarr.containers.container import Commit, Fitted, Output
from h5zarr.containers.fitting import fit_into
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.registry import check_output_before, container_for_output
from h5zarr.display import summary_repr
from h5zarr.errors import H5ZarrError, Problem, ProblemWarning
from h5zarr.io.location import Location
from h5zarr.io.log import RequestLog
from h5zarr.io.source import Identity
from h5zarr.zarr_model.hierarchy import Json


class ProblemsFound(H5ZarrError):
    """Some of the file cannot be translated, and the user asked for all or nothing."""

    kind = "strict"
    remedy = "Exclude these objects with exclude=[PATTERN], or write the rest without strict=True."

    def __init__(self, problems: Sequence[Problem], because: str = "strict=True: nothing was written") -> None:
        self.problems = tuple(problems)
        what = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(f"{what} found with {because}")
        for problem in self.problems:
            self.add_note(str(problem))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Translation(FittedResult):
    """A translated file: Zarr metadata and references. `str()` is the text that `h5zarr translate` prints.

    Attributes
    ----------
    source
        The file, without secrets in its URL.
    fitted
        What can be written.
    provenance
        The version of h5zarr, and the state of the files that were read.
    options
        How the file was translated.
    log
        Counts of rounds, requests and bytes.
    source_nbytes
        Size of the file.
    seconds
        How long it took.
    bare_dimensions
        Paths of dimensions without a coordinate variable.
    renamed
        Paths in the file of variables whose name in netCDF differs.
    unread
        States of referenced files that contribute nothing; None for those that do not exist.

    Examples
    --------
    >>> import h5zarr
    >>> translation = h5zarr.translate("ocean.nc")
    >>> translation.problems
    ()
    >>> translation.arrays()["/sst"]
    <ArrayNode: int16, shape (18, 40, 120), <Manifest: 20 chunks referenced, 0 inlined>>
    >>> translation.write("ocean.json")
    """

    source: str
    fitted: Fitted
    provenance: Provenance
    options: Options
    log: RequestLog
    source_nbytes: int
    seconds: float
    bare_dimensions: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, Identity | None] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return summary_repr("Translation", self.source, *self._counts())

    def __str__(self) -> str:
        return "\n".join(translation_lines(self))

    def to_json(self) -> dict[str, Json]:
        """Return the report for machines: what `h5zarr translate --report` writes."""
        return {
            "source": self.source,
            "source_bytes": self.source_nbytes,
            **count_up(self.hierarchy),
            "problems": [problem.to_json() for problem in self.problems],
            "warnings": [problem.to_json() for problem in self.warnings],
            "dimensions_without_variable": list(self.bare_dimensions),
            "rounds": self.log.rounds,
            "requests": self.log.requests,
            "bytes_read": self.log.nbytes,
            "seconds": round(self.seconds, 6),
        }

    def write(
        self,
        out: str | os.PathLike[str],
        *,
        branch: str | None = None,
        message: str | None = None,
        overwrite: bool = False,
        output_options: Mapping[str, Any] | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the references, all or nothing. A `ProblemWarning` names whatever the container cannot hold.

        Parameters
        ----------
        out, branch, message, overwrite, output_options
            Where and how to write, as in `h5zarr.translate`.
        storage_options
            How the file was opened. An Icechunk repository keeps what is not secret, such as an endpoint, for readers.
        """
        output = Output(
            location=Location.parse(out),
            storage_options=output_options,
            source_options=storage_options,
            commit=Commit.of(branch, message),
            overwrite=overwrite,
        )
        check_output_before(output, Location.parse(self.provenance.sources[0].url), self.options.zarr_format)
        self.write_to(output)

    def write_to(self, output: Output) -> None:
        """Write the references to an output that was checked.

        Parameters
        ----------
        output
            The checked output.
        """
        container = container_for_output(output.location)
        fitted = fit_into(self.fitted, container)
        known = len(self.problems), len(self.warnings)
        for problem in (*fitted.hierarchy.problems[known[0] :], *fitted.hierarchy.warnings[known[1] :]):
            warn(f"{problem}. {problem.remedy}", ProblemWarning, stacklevel=3)
        container.write(fitted, replace(self.provenance, problems=fitted.hierarchy.problems), output)

"""The result of a translation, and how to write it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from warnings import warn

from h5zarr.commands.translate.options import Options
from h5zarr.commands.translate.translation_text import count_up, translation_lines
from h5zarr.containers.container import Commit, Fitted, Output
from h5zarr.containers.fitting import fit_into
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.registry import check_output_before, container_for_output
from h5zarr.display import counted, summary_repr
from h5zarr.errors import H5ZarrError, Problem, ProblemWarning
from h5zarr.io.log import RequestLog
from h5zarr.io.source import Identity
from h5zarr.zarr_model.hierarchy import ArrayNode, Hierarchy, Json


class ProblemsFound(H5ZarrError):
    """Some of the file cannot be translated, and the user asked for all or nothing."""

    kind = "strict"
    remedy = "Exclude the objects named above with exclude=[PATTERN], or write the rest without strict=True."

    def __init__(self, problems: Sequence[Problem], because: str = "strict=True: nothing was written") -> None:
        self.problems = tuple(problems)
        what = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(f"{what} found with {because}")
        for problem in self.problems:
            self.add_note(str(problem))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Translation:
    """The result: Zarr metadata and references, what is left out (`problems`) and what is incomplete (`warnings`).

    `fitted` is what can be written. `bare_dimensions` are the paths of dimensions without a variable, which are not
    arrays. `renamed` maps variables to their paths in the file, where netCDF's name differs. `unread` holds the states
    of referenced files that contribute nothing here; None for those that do not exist.
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
        counts = count_up(self.hierarchy)
        facts = (counted(counts["arrays"], "array"), counted(counts["chunks"], "chunk"))
        return summary_repr("Translation", self.source, *facts, counted(len(self.problems), "problem"))

    def __str__(self) -> str:
        return "\n".join(translation_lines(self))

    @property
    def hierarchy(self) -> Hierarchy:
        return self.fitted.hierarchy

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self.hierarchy.problems

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return self.hierarchy.warnings

    def arrays(self) -> Mapping[str, ArrayNode]:
        """The arrays, by path."""
        return {path: node for path, node in self.hierarchy.nodes.items() if isinstance(node, ArrayNode)}

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

    def warn(self, stacklevel: int = 2) -> None:
        """Issue a Python warning for everything that is left out or incomplete."""
        for problem in (*self.problems, *self.warnings):
            warn(f"{problem}. {problem.remedy}".rstrip(), ProblemWarning, stacklevel + 1)

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
        """Write the references to `out`, all or nothing. Names and options are those of `h5zarr.translate`.

        An Icechunk repository also keeps the options in `storage_options` that are not secret, such as an endpoint, for
        readers. Whatever a container cannot hold is left out and named in a `ProblemWarning`.
        """
        output = Output(
            location=os.fspath(out),
            storage_options=output_options,
            source_options=storage_options,
            commit=Commit.of(branch, message),
            overwrite=overwrite,
        )
        check_output_before(output, self.provenance.sources[0].url, self.options.zarr_format)
        self.write_to(output)

    def write_to(self, output: Output) -> None:
        """Write the references to an output that was checked."""
        container = container_for_output(output.location)
        fitted = fit_into(self.fitted, container)
        known = len(self.problems), len(self.warnings)
        for problem in (*fitted.hierarchy.problems[known[0] :], *fitted.hierarchy.warnings[known[1] :]):
            warn(f"{problem}. {problem.remedy}", ProblemWarning, stacklevel=3)
        container.write(fitted, replace(self.provenance, problems=fitted.hierarchy.problems), output)

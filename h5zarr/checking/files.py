"""One file: what becomes of its variables, what it costs to read, and what could be better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from h5zarr.checking.advice import Advice, MetadataCost, advise_file, advise_variable
from h5zarr.checking.commands import Mending
from h5zarr.checking.facts import FileFacts, find_facts
from h5zarr.checking.variables import CheckedVariable, Verdict, check_variables, describe_problem
from h5zarr.checking.watched import WatchedSource, open_watched
from h5zarr.errors import Problem
from h5zarr.hdf5.superblock import read_superblock
from h5zarr.hierarchy import Json
from h5zarr.io.log import RequestLog
from h5zarr.io.plan import total_nbytes
from h5zarr.io.policy import ReadPolicy
from h5zarr.io.steps import run
from h5zarr.io.url import display_url
from h5zarr.netcdf3.model import ClassicFile
from h5zarr.scanning import paused_collector, scan_any
from h5zarr.translating import Options, translate_scanned


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFile:
    """What was found out about one file. `source` is its name or URL, without secrets; `problems` concern groups of it.

    `warnings` name what is there but not all that it was. `facts` are for comparing it with others.
    """

    source: str
    nbytes: int
    format: str
    variables: tuple[CheckedVariable, ...]
    metadata: MetadataCost
    advice: tuple[Advice, ...] = ()
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    facts: FileFacts = field(repr=False)

    @property
    def is_virtualisable(self) -> bool:
        """Whether everything in it can be had through references."""
        return not self.problems and not any(variable.problems for variable in self.variables)

    def count(self, verdict: Verdict) -> int:
        """Return how many variables have this verdict."""
        return sum(variable.verdict is verdict for variable in self.variables)

    def to_json(self) -> dict[str, Json]:
        """Return it for machines."""
        return {
            "source": self.source,
            "format": self.format,
            "bytes": self.nbytes,
            "virtualisable": self.is_virtualisable,
            "variables": [variable.to_json() for variable in self.variables],
            "metadata": self.metadata.to_json(),
            "advice": [asdict(advice) for advice in self.advice],
            "problems": [describe_problem(problem) for problem in self.problems],
            "warnings": [describe_problem(problem) for problem in self.warnings],
        }


def check_file(
    url: str, options: Options, storage_options: Mapping[str, Any] | None = None, policy: ReadPolicy | None = None
) -> CheckedFile:
    """Return what a translation of the file at `url` finds out. Raises H5ZarrError where it cannot be read."""
    with open_watched(url, storage_options, policy) as source, paused_collector():
        file = scan_any(source, options.limits)
        metadata = _cost_so_far(source, replace(source.log), is_classic=isinstance(file, ClassicFile))
        done = translate_scanned(source, file, url, options, storage_options, policy)
        nbytes = source.nbytes
    hierarchy = done.hierarchy
    variables = check_variables(hierarchy)
    mending = Mending(source=url, is_classic=isinstance(file, ClassicFile), renamed=done.renamed)
    advice = [one for variable in variables for one in advise_variable(variable, mending)]
    advice += advise_file(nbytes, metadata, variables, mending)
    told = {variable.path for variable in variables}
    return CheckedFile(
        source=display_url(url),
        nbytes=nbytes,
        format="netCDF-3" if isinstance(file, ClassicFile) else "HDF5",
        variables=variables,
        metadata=metadata,
        advice=tuple(advice),
        problems=tuple(problem for problem in hierarchy.problems if problem.path not in told),
        warnings=hierarchy.warnings,
        facts=find_facts(hierarchy),
    )


def _cost_so_far(source: WatchedSource, log: RequestLog, *, is_classic: bool) -> MetadataCost:
    """Return what reading has cost so far, which is what the metadata took."""
    asked, places = source.asked, source.places()
    is_paged = source.is_paged
    # It was read before, so that nothing is fetched.
    block = 0 if is_classic else run(read_superblock(source.nbytes), source.read_many, source.far).sizes.base
    return MetadataCost(
        rounds=log.rounds,
        requests=log.requests,
        nbytes=log.nbytes,
        asked_nbytes=total_nbytes(asked),
        places=len(places),
        end=int(places[-1, 1]) if len(places) else 0,
        is_paged=is_paged,
        user_block_nbytes=block,
    )

"""Check one file: the verdict on each variable, the cost of reading it, and advice."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from h5zarr.commands.check.advice import Advice, MetadataCost, advise_file, advise_variable
from h5zarr.commands.check.commands import Mending
from h5zarr.commands.check.variables import CheckedVariable, Verdict, check_variables
from h5zarr.commands.check.watched import WatchedSource, open_watched
from h5zarr.commands.combine.facts import FileFacts, find_facts
from h5zarr.commands.translate.options import Options
from h5zarr.commands.translate.translate import translate_scanned
from h5zarr.display import counted, summary_repr
from h5zarr.errors import Problem
from h5zarr.formats import paused_collector, scan_any
from h5zarr.hdf5.superblock import read_superblock
from h5zarr.io.access import USUAL_ACCESS, Access
from h5zarr.io.location import Location
from h5zarr.io.log import RequestLog
from h5zarr.io.plan import total_nbytes
from h5zarr.io.steps import run
from h5zarr.netcdf3.classic_file import ClassicFile
from h5zarr.zarr_model.hierarchy import Json


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CheckedFile:
    """The result for one file. `source` is its name or URL, without secrets; `problems` concern its groups.

    `warnings` name objects that are included, but not completely. `facts` are for comparing it with other files.
    """

    source: str
    nbytes: int
    format: str
    variables: tuple[CheckedVariable, ...]
    metadata: MetadataCost
    advice: tuple[Advice, ...] = ()
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    facts: FileFacts

    def __repr__(self) -> str:
        refused = f"{self.count(Verdict.REFUSED):,} refused"
        return summary_repr("CheckedFile", self.source, counted(len(self.variables), "variable"), refused)

    @property
    def is_virtualisable(self) -> bool:
        """Whether everything in the file is available through references."""
        return not self.problems and not any(variable.problems for variable in self.variables)

    def count(self, verdict: Verdict) -> int:
        """Return how many variables have this verdict."""
        return sum(variable.verdict is verdict for variable in self.variables)

    def to_json(self) -> dict[str, Json]:
        """Return this file for machines."""
        return {
            "source": self.source,
            "format": self.format,
            "bytes": self.nbytes,
            "virtualisable": self.is_virtualisable,
            "variables": [variable.to_json() for variable in self.variables],
            "metadata": self.metadata.to_json(),
            "advice": [asdict(advice) for advice in self.advice],
            "problems": [problem.to_json() for problem in self.problems],
            "warnings": [problem.to_json() for problem in self.warnings],
        }


def check_file(url: str, options: Options, access: Access = USUAL_ACCESS) -> CheckedFile:
    """Return the findings of a translation of the file at `url`. Raises H5ZarrError if it cannot be read."""
    location = Location.parse(url)
    with open_watched(url, access) as source, paused_collector():
        file = scan_any(source, access.limits)
        metadata = _cost_so_far(source, replace(source.log), is_classic=isinstance(file, ClassicFile))
        done = translate_scanned(source, file, location, options, access)
        nbytes = source.nbytes
    hierarchy = done.hierarchy
    variables = check_variables(hierarchy)
    mending = Mending(source=location, is_classic=isinstance(file, ClassicFile), renamed=done.renamed)
    advice = [one for variable in variables for one in advise_variable(variable, mending)]
    advice += advise_file(nbytes, metadata, variables, mending)
    shown = {variable.path for variable in variables}
    return CheckedFile(
        source=str(location),
        nbytes=nbytes,
        format="netCDF-3" if isinstance(file, ClassicFile) else "HDF5",
        variables=variables,
        metadata=metadata,
        advice=tuple(advice),
        problems=tuple(problem for problem in hierarchy.problems if problem.path not in shown),
        warnings=hierarchy.warnings,
        facts=find_facts(hierarchy),
    )


def _cost_so_far(source: WatchedSource, log: RequestLog, *, is_classic: bool) -> MetadataCost:
    """Return the cost of reading so far, which is the cost of the metadata."""
    asked, places = source.asked, source.places()
    is_paged = source.is_paged
    # The superblock has been read already, so this fetches nothing.
    block = 0 if is_classic else run(read_superblock(source.nbytes), source.read_many, source.planner).sizes.base
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

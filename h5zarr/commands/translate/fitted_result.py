"""What the results of translate, convert and combine have in common: they hold references that fit a container."""

from __future__ import annotations

from collections.abc import Mapping
from warnings import warn

from h5zarr.commands.translate.translation_text import count_up
from h5zarr.containers.container import Fitted
from h5zarr.display import counted
from h5zarr.errors import Problem, ProblemWarning
from h5zarr.zarr_model.hierarchy import ArrayNode, Hierarchy


class FittedResult:
    """The base of results with a field `fitted`."""

    __slots__ = ()
    fitted: Fitted

    @property
    def hierarchy(self) -> Hierarchy:
        """The groups and arrays, as Zarr metadata and chunk locations."""
        return self.fitted.hierarchy

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is left out, and why."""
        return self.hierarchy.problems

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What is included, but not completely."""
        return self.hierarchy.warnings

    def arrays(self) -> Mapping[str, ArrayNode]:
        """The arrays, by path."""
        return {path: node for path, node in self.hierarchy.nodes.items() if isinstance(node, ArrayNode)}

    def warn(self, stacklevel: int = 2) -> None:
        """Issue a Python warning for everything that is left out or incomplete.

        Parameters
        ----------
        stacklevel
            The caller to blame, as in `warnings.warn`.
        """
        for problem in (*self.problems, *self.warnings):
            warn(f"{problem}. {problem.remedy}".rstrip(), ProblemWarning, stacklevel + 1)

    def _counts(self) -> tuple[str, ...]:
        """Return the numbers of arrays, chunks and problems, for a `repr`."""
        counts = count_up(self.hierarchy)
        numbers = (counts["arrays"], "array"), (counts["chunks"], "chunk"), (len(self.problems), "problem")
        return tuple(counted(*one) for one in numbers)

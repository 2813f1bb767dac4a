"""Provenance: the sources of references and the version that wrote them, stored where readers ignore it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from h5zarr.containers.cube_layout import CubeLayout
from h5zarr.containers.source_state import SourceState, decode_source, encode_source
from h5zarr.errors import MalformedFile, Problem
from h5zarr.zarr_model.hierarchy import Json


@dataclass(frozen=True, slots=True)
class Provenance:
    """The version of h5zarr, the files it read, in the order of the hierarchy's URLs, and what it left out.

    There is no time of writing: the same input gives the same output, byte for byte. `cube` is the layout of
    references that join several files.
    """

    version: str
    sources: Sequence[SourceState] = ()
    problems: tuple[Problem, ...] = ()
    cube: CubeLayout | None = None

    def to_json(self, *, has_files: bool = True) -> Json:
        """Return the version, the identifying state of each source, and problems and the layout of a cube, if any.

        Without the files if these are written elsewhere.
        """
        sources = [encode_source(one.url, one.identity) for one in self.sources] if has_files else []
        document = {"version": self.version, "sources": sources}
        if self.problems:
            document["problems"] = [asdict(problem) for problem in self.problems]
        return document if self.cube is None else {**document, "cube": self.cube.to_json(has_files=has_files)}

    @classmethod
    def from_json(cls, value: Json) -> Provenance:
        """Return the provenance that `to_json` encoded, except for secrets. Raises MalformedFile for anything else."""
        match value:
            case {"version": str(version), "sources": list(sources)}:
                problems, cube = value.get("problems", []), value.get("cube")
                if isinstance(problems, list):
                    return cls(
                        version,
                        tuple(map(decode_source, sources)),
                        tuple(map(_decode_problem, problems)),
                        None if cube is None else CubeLayout.from_json(cube),
                    )
        raise MalformedFile("the provenance of the references does not have h5zarr's form")


def _decode_problem(value: Json) -> Problem:
    match value:
        case {"path": str(path), "kind": str(kind), "message": str(message), "remedy": str(remedy)}:
            return Problem(path, kind, message, remedy)
    raise MalformedFile("the recorded problems of the references do not have h5zarr's form")

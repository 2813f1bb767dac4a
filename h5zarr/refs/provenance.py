"""What references were made of, and by what: it rides in the container, where readers ignore it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from h5zarr.errors import MalformedFile, Problem
from h5zarr.hierarchy import Json
from h5zarr.io.reference_url import hide_secrets
from h5zarr.io.source import Identity


@dataclass(frozen=True, slots=True)
class SourceState:
    """A file as it was when it was read. `url` may hold secrets: they are left out when it is written."""

    url: str
    identity: Identity


@dataclass(frozen=True, slots=True)
class Provenance:
    """The version of h5zarr, the files that it read, in the order of the hierarchy's URLs, and what it left out.

    There is no time of writing: the same input gives the same output, byte for byte.
    """

    version: str
    sources: tuple[SourceState, ...] = ()
    problems: tuple[Problem, ...] = ()

    def to_json(self) -> Json:
        """Return the version, for each source what tells one state of it from another, and problems, if any."""
        told = {"version": self.version, "sources": [_encode_source(source) for source in self.sources]}
        return {**told, "problems": [asdict(problem) for problem in self.problems]} if self.problems else told

    @classmethod
    def from_json(cls, value: Json) -> Provenance:
        """Return what `to_json` made `value` of, but for the secrets. Raises MalformedFile for anything else."""
        match value:
            case {"version": str(version), "sources": list(sources)}:
                problems = value.get("problems", [])
                if isinstance(problems, list):
                    return cls(version, tuple(map(_decode_source, sources)), tuple(map(_decode_problem, problems)))
        raise MalformedFile("what references were made of is told in another form than h5zarr's")


def _encode_source(source: SourceState) -> Json:
    identity = source.identity
    known = {
        "nbytes": identity.nbytes,
        "etag": identity.etag,
        "mtime": identity.mtime,
        "version": identity.version,
    }
    return {"url": hide_secrets(source.url), **{name: value for name, value in known.items() if value is not None}}


def _decode_problem(value: Json) -> Problem:
    match value:
        case {"path": str(path), "kind": str(kind), "message": str(message), "remedy": str(remedy)}:
            return Problem(path, kind, message, remedy)
    raise MalformedFile("what was left out of references is told in another form than h5zarr's")


def _decode_source(value: Json) -> SourceState:
    """Return a source. What a later version may tell besides is left out."""
    match value:
        case {"url": str(url), "nbytes": int(nbytes)}:
            told = {name: value.get(name) for name in ("etag", "mtime", "version")}
            if all(one is None or isinstance(one, str) for one in told.values()):
                return SourceState(url, Identity(nbytes=nbytes, **told))
    raise MalformedFile("a file that references were made of is told in another form than h5zarr's")

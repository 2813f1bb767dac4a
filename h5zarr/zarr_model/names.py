"""Check for names and URLs that readers of references cannot handle.

Readers accept spaces, quotes, percent signs, braces, control characters and all of Unicode in names and URLs. The names
that are refused here make zarr fail on the whole file, not only on the node with the name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from h5zarr.errors import Problem, Unrepresentable
from h5zarr.io.location import Location
from h5zarr.io.protocols import protocol_of
from h5zarr.tree import refuse_name
from h5zarr.zarr_model.hierarchy import Hierarchy

URL_KIND = "url"
NAME_KIND = "name"
_MOST_NBYTES = 255


def leave_out_unreadable(hierarchy: Hierarchy) -> tuple[Hierarchy, tuple[Problem, ...]]:
    """Return `hierarchy` without the nodes that readers fail on because of a name, and a problem for each such name."""
    refused = {
        path: problem
        for path in hierarchy.nodes
        if path != "/" and (problem := refuse_name(path, path.rpartition("/")[2])) is not None
    }
    if not refused:
        return hierarchy, ()
    below = tuple(f"{path}/" for path in refused)
    nodes = {path: node for path, node in hierarchy.nodes.items() if path not in refused and not path.startswith(below)}
    problems = tuple(problem for path, problem in refused.items() if not path.startswith(below))
    return replace(hierarchy, nodes=nodes), problems


def check_reserved(paths: Iterable[str]) -> tuple[Problem, ...]:
    """Return a warning for each name that Zarr version 3 reserves. Current readers accept them anyway."""
    what = "Zarr version 3 reserves names that begin with two underscores, and a reader may refuse it"
    remedy = "If a reader refuses it, write Zarr version 2, or rename it in a copy of the file."
    return tuple(Problem(path, NAME_KIND, what, remedy) for path in paths if path.rpartition("/")[2].startswith("__"))


def check_parquet(arrays: Iterable[str]) -> tuple[Problem, ...]:
    """Return a problem for each array path that is not possible in Parquet references, whose files use its name.

    fsspec's reader treats names that begin with .z as metadata. It would find no chunks and show fill values.
    """
    problems = []
    for path in arrays:
        names = path.split("/")
        if any(name.startswith(".z") for name in names):
            what = "readers of Parquet treat names that begin with .z as metadata, and would not find its chunks"
        elif max(len(name.encode(errors="surrogateescape")) for name in names) > _MOST_NBYTES:
            what = f"a name has more than {_MOST_NBYTES} bytes, and the directory of its references cannot have it"
        elif "\0" in path:
            what = "a name contains a zero byte, and the directory of its references cannot have it"
        else:
            continue
        problems.append(Problem(path, Unrepresentable.kind, what, "Write JSON references, which can hold it."))
    return tuple(problems)


def check_urls(locations: Sequence[Location]) -> tuple[Problem, ...]:
    """Return a problem for each URL that readers of references do not follow without help."""
    problems = []
    for location in locations:
        if location.is_chain:
            what = "readers of references do not follow a chain of URLs"
            remedy = "Unpack the file, and translate the unpacked file."
            problems.append(Problem(str(location), URL_KIND, what, remedy))
    protocols = {protocol_of(location.text) for location in locations}
    if len(protocols) > 1:
        what = f"the references need {len(protocols)} protocols ({', '.join(sorted(protocols))}), and readers open one"
        remedy = "Name the file systems when opening: fs={protocol: options, ...} in the storage options."
        problems.append(Problem("/", URL_KIND, what, remedy))
    return tuple(problems)


def check_readers(locations: Sequence[Location]) -> tuple[Problem, ...]:
    """Return a warning for each URL that readers of references follow only with an option.

    Without it, fsspec would silently read another version of the object, or request another URL. `engine="h5zarr"`
    needs no option.
    """
    warnings = []
    for location in locations:
        if location.is_chain:
            continue
        if location.selects_version:
            what = "readers other than h5zarr ignore the version in the URL and read the newest version of the object"
            warnings.append(Problem(str(location), URL_KIND, what, _opened_with("version_aware")))
        elif location.is_changed_by_fsspec:
            what = "readers other than h5zarr decode some escapes in this URL, so the server may not find the file"
            warnings.append(Problem(str(location), URL_KIND, what, _opened_with("encoded")))
    return tuple(warnings)


def _opened_with(option: str) -> str:
    return f'Readers need {option}=True: remote_options={{"{option}": True, ...}} in their storage options.'

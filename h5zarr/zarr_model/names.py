"""Names and URLs that no form of references makes readable.

Readers are forgiving: blanks, quotes, percent signs, braces, control characters and all of Unicode read right in names
and in URLs. What is refused here makes zarr fail on the whole file, not only on the node that bears the name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from h5zarr.errors import Problem, Unrepresentable
from h5zarr.io.location import Location
from h5zarr.io.protocols import grammar_of, protocol_of
from h5zarr.io.urls import is_chain, is_rewritten, split_query
from h5zarr.tree import refuse_path
from h5zarr.zarr_model.hierarchy import Hierarchy

URL_KIND = "url"
NAME_KIND = "name"
_MOST_NBYTES = 255


def leave_out_unreadable(hierarchy: Hierarchy) -> tuple[Hierarchy, tuple[Problem, ...]]:
    """Return `hierarchy` without the nodes that readers fail on because of a name, and a problem for each such name."""
    refused = {
        path: problem
        for path in hierarchy.nodes
        if path != "/" and (problem := refuse_path(path, path.rpartition("/")[2])) is not None
    }
    if not refused:
        return hierarchy, ()
    below = tuple(f"{path}/" for path in refused)
    nodes = {path: node for path, node in hierarchy.nodes.items() if path not in refused and not path.startswith(below)}
    problems = tuple(problem for path, problem in refused.items() if not path.startswith(below))
    return replace(hierarchy, nodes=nodes), problems


def check_reserved(paths: Iterable[str]) -> tuple[Problem, ...]:
    """Return a warning for each name that Zarr version 3 reserves. Readers of today take them all the same."""
    what = "names that begin with two underscores are reserved by Zarr version 3, and a reader may refuse it"
    remedy = "Write version 2, if a reader does; or rename it in a copy of the file."
    return tuple(Problem(path, NAME_KIND, what, remedy) for path in paths if path.rpartition("/")[2].startswith("__"))


def check_parquet(arrays: Iterable[str]) -> tuple[Problem, ...]:
    """Return a problem for each path of an array that references in Parquet cannot hold, whose files bear its name.

    fsspec's reader takes names that begin with .z for metadata, finds no chunk, and would show fill values.
    """
    problems = []
    for path in arrays:
        names = path.split("/")
        if any(name.startswith(".z") for name in names):
            what = "readers of Parquet take names that begin with .z for metadata, and would miss its chunks"
        elif max(len(name.encode(errors="surrogateescape")) for name in names) > _MOST_NBYTES:
            what = f"a name has more than {_MOST_NBYTES} bytes, which the directory of its references cannot have"
        elif "\0" in path:
            what = "a name has a zero byte, which the directory of its references cannot have"
        else:
            continue
        problems.append(Problem(path, Unrepresentable.kind, what, "Write JSON, which keeps it."))
    return tuple(problems)


def check_urls(urls: tuple[str, ...]) -> tuple[Problem, ...]:
    """Return a problem for each URL that readers of references do not follow by themselves."""
    problems = []
    for url in urls:
        if is_chain(url):
            what = "readers of references do not follow a chain of URLs"
            remedy = "Unpack the file, and translate it where it then is."
            problems.append(Problem(str(Location.parse(url)), URL_KIND, what, remedy))
    protocols = {protocol_of(url) for url in urls}
    if len(protocols) > 1:
        what = f"the references need {len(protocols)} protocols ({', '.join(sorted(protocols))}), and readers open one"
        remedy = "Name the file systems when opening: fs={protocol: options, ...} in the storage options."
        problems.append(Problem("/", URL_KIND, what, remedy))
    return tuple(problems)


def check_readers(urls: tuple[str, ...]) -> tuple[Problem, ...]:
    """Return a warning for each URL that readers of references follow only with an option: fsspec's would silently read
    another version of the object without it, or ask the server for another URL. `engine="h5zarr"` needs no option.
    """
    warnings = []
    for url in urls:
        if is_chain(url):
            continue
        if grammar_of(url).is_version and split_query(url)[1]:
            what = "readers other than h5zarr take the newest version of this object, whatever version the URL names"
            warnings.append(Problem(str(Location.parse(url)), URL_KIND, what, _opened_with("version_aware")))
        elif is_rewritten(url):
            what = (
                "readers other than h5zarr undo some of the escapes in this URL, and the server may not know the result"
            )
            warnings.append(Problem(str(Location.parse(url)), URL_KIND, what, _opened_with("encoded")))
    return tuple(warnings)


def _opened_with(option: str) -> str:
    return f'Have it opened with {option}=True: remote_options={{"{option}": True, ...}} in the storage options.'

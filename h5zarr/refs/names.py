"""Names and URLs that no form of references makes readable.

Readers are forgiving: blanks, quotes, percent signs, braces, control characters and all of Unicode read right in names
and in URLs. What is refused here makes zarr fail on the whole file, not only on the node that bears the name.
"""

from __future__ import annotations

from dataclasses import replace

from h5zarr.errors import Problem, Unrepresentable
from h5zarr.hierarchy import Hierarchy
from h5zarr.io.url import display_url


def leave_out_unreadable(hierarchy: Hierarchy) -> tuple[Hierarchy, tuple[Problem, ...]]:
    """Return `hierarchy` without the nodes that readers fail on because of a name, and a problem for each such name."""
    reasons = {path: why for path in hierarchy.nodes if (why := _refuse(path))}
    if not reasons:
        return hierarchy, ()
    below = tuple(f"{path}/" for path in reasons)
    nodes = {path: node for path, node in hierarchy.nodes.items() if path not in reasons and not path.startswith(below)}
    remedy = "Rename it in a copy of the file, or read it from the file itself."
    problems = tuple(
        Problem(path, Unrepresentable.kind, why, remedy) for path, why in reasons.items() if not path.startswith(below)
    )
    return replace(hierarchy, nodes=nodes), problems


def _refuse(path: str) -> str:
    """Return why readers fail on the last name of `path`, or nothing."""
    name = path.rpartition("/")[2]
    if path == "/":
        return ""
    if "\\" in name:
        return "the name has a backslash, which zarr takes for a slash"
    if name in ("", ".", ".."):
        return f'zarr does not take "{name}" for a name'
    return ""


def check_urls(urls: tuple[str, ...]) -> tuple[Problem, ...]:
    """Return a problem for each URL that readers of references do not follow by themselves."""
    problems = []
    for url in urls:
        if "::" in url:
            what = "readers of references do not follow a chain of URLs"
            remedy = "Unpack the file, and translate it where it then is."
            problems.append(Problem(display_url(url), Unrepresentable.kind, what, remedy))
    protocols = {url.partition("://")[0] if "://" in url else "file" for url in urls}
    if len(protocols) > 1:
        what = f"the references need {len(protocols)} protocols ({', '.join(sorted(protocols))}), and readers open one"
        remedy = "Name the file systems when opening: fs={protocol: options, ...} in the storage options."
        problems.append(Problem("/", Unrepresentable.kind, what, remedy))
    return tuple(problems)

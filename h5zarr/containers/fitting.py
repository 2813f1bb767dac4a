"""Fit a hierarchy to its Zarr version and its container, once per translation or conversion.

Writers take the fitted hierarchy, and leave nothing out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from h5zarr.containers.container import Container, Fitted
from h5zarr.io.location import Location
from h5zarr.zarr_model.hierarchy import Hierarchy
from h5zarr.zarr_model.names import check_readers, check_reserved, check_urls, leave_out_unreadable
from h5zarr.zarr_model.v3_nodes import encode_v3

# No part of it has a meaning: no user, query, version, escape or chain.
_PLAIN = re.compile(r"(?:[a-z][a-z0-9+.\-]*:/)?/[\w./+=,\- ]*", re.ASCII)


def fit(
    hierarchy: Hierarchy,
    *,
    zarr_format: int = 3,
    container: Container | None = None,
    nz: bool = False,
    joinable: bool = False,
) -> Fitted:
    """Return `hierarchy` without what the Zarr version, readers or the container cannot hold, and its encoded nodes.

    The problems of the result name everything that is left out. With `nz`, every node declares the NZ convention.
    """
    readable, problems = leave_out_unreadable(hierarchy)
    locations = [Location.parse(url) for url in _distinct(hierarchy.urls)]
    problems += check_urls(locations)
    warnings = hierarchy.warnings + check_readers(locations)
    if zarr_format == 3:
        warnings += check_reserved(readable.nodes)
    # Imported here, because most references need neither, and starting up is a large part of a small translation.
    if nz:
        from h5zarr.zarr_model.nz.declare import declare_nz

        readable, against = declare_nz(readable, zarr_format)
        warnings += against
    if zarr_format == 2:
        from h5zarr.zarr_model.v2_nodes import encode_v2

        nodes, left_out = encode_v2(readable, joinable=joinable)
        problems += left_out
    else:
        nodes = encode_v3(readable)
    kept = {path: node for path, node in readable.nodes.items() if path in nodes}
    made = replace(readable, nodes=kept, problems=hierarchy.problems + problems, warnings=warnings)
    return fit_into(Fitted(made, zarr_format, nodes), container)


def _distinct(urls: Iterable[str]) -> list[str]:
    """Return URLs without those that are like an earlier one for readers: a cube has many, and parsing takes time."""
    found: dict[str, str] = {}
    for url in urls:
        is_plain = _PLAIN.fullmatch(url) is not None
        found.setdefault(url.partition("://")[0] if is_plain and "://" in url else "/" if is_plain else url, url)
    return list(found.values())


def fit_into(fitted: Fitted, container: Container | None) -> Fitted:
    """Return what also fits a container. If it was fitted to it before, it is returned unchanged."""
    if container is None or container is fitted.container:
        return fitted
    hierarchy = container.fit(fitted.hierarchy)
    nodes = {path: fitted.nodes[path] for path in hierarchy.nodes}
    return replace(fitted, hierarchy=hierarchy, nodes=nodes, container=container)

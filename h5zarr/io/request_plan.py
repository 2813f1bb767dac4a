"""Which requests bring the chunks that are wanted. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from h5zarr.io.fetch_policy import FetchPolicy
from h5zarr.io.span import Span

Column = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Request:
    """A range to fetch, and the numbers of the wanted spans that lie in it."""

    span: Span
    numbers: Column


def plan_requests(address: Column, nbytes: Column, policy: FetchPolicy) -> list[Request]:
    """Return requests that bring every span, each byte once, in the order of the file. Empty spans are in none.

    Spans that are no farther apart than the policy's gap come together, up to its size of a request; a span is never
    cut, so that a request may be as large as the largest of them. Spans that overlap come together in any case.
    """
    wanted = np.flatnonzero(nbytes > 0)
    order = wanted[np.argsort(address[wanted], kind="stable")]
    starts = address[order]
    reach = np.maximum.accumulate(starts + nbytes[order]) if len(order) else starts
    apart = np.ones(len(order), bool)
    apart[1:] = starts[1:] - reach[:-1] > policy.gap_nbytes
    # A span that overlaps those before it must be in their request.
    may_begin = np.ones(len(order), bool)
    may_begin[1:] = starts[1:] >= reach[:-1]
    ends_of_runs = np.append(np.flatnonzero(apart)[1:], len(order))
    beginnings = np.flatnonzero(may_begin)
    requests = []
    first = 0
    while first < len(order):
        run_end = int(ends_of_runs[np.searchsorted(ends_of_runs, first, side="right")])
        after = int(np.searchsorted(reach, starts[first] + policy.request_nbytes, side="right"))
        after = min(run_end, max(first + 1, after))
        # Back to where a request may begin; or, where one span reaches over all of these, on to the next such place.
        place = int(np.searchsorted(beginnings, after, side="right")) - 1
        if after < len(order) and beginnings[place] != after:
            following = int(beginnings[place + 1]) if place + 1 < len(beginnings) else len(order)
            after = int(beginnings[place]) if beginnings[place] > first else following
        start = int(starts[first])
        requests.append(Request(Span(start, int(reach[after - 1]) - start), order[first:after]))
        first = after
    return requests

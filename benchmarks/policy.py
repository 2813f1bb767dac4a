"""What a policy comes to, in any network, without one: files are read from the disk, and time is reckoned.

    python benchmarks/policy.py [--directory DIR] [--files NAME,...] [--set NAME=VALUE,VALUE,...]

A round takes the latency, then its bytes at the bandwidth or its requests at 0.6 ms each, whichever is longer: what a
processor of today takes for one. For each file and network there is the time of the rounds, without that of the parser,
and how many rounds, requests and megabytes there are. `--set ahead_round_trips=0,0.5,2` compares values of a number of
`NetworkPolicy`. `translate_remote.py` measures the same in earnest.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

from files import default_directory
from tables import print_machine, print_table
from translate_remote import MAKERS, NETWORKS, Network, is_chosen

from h5zarr.commands.translate.options import Options
from h5zarr.commands.translate.translate import translate_source
from h5zarr.io.location import Location
from h5zarr.io.network import NetworkPolicy
from h5zarr.io.planned import PlannedSource
from h5zarr.io.source import Identity
from h5zarr.io.span import Span

REQUEST_SECONDS = 0.0006


class ReckonedSource(PlannedSource):
    """A local file that keeps account of how long it would take if it were far away."""

    def __init__(self, path: Path, network: Network, policy: NetworkPolicy) -> None:
        self._latency, self._bandwidth = network.latency_ms / 1e3, network.megabytes_per_second * 1e6
        super().__init__(str(path), replace(policy, latency_seconds=self._latency, bytes_per_second=self._bandwidth))
        self.seconds = 0.0
        self._file = path.open("rb")
        self._open(Identity(nbytes=path.stat().st_size))
        self._fetch(self._extend_first(self._cache.ranges))  # as over HTTP, where that tells the size
        self._begun = True

    def _request(self, spans: list[Span]) -> list[bytes]:
        nbytes, count = sum(span.nbytes for span in spans), len(spans)
        waits = ceil(count / self._network.scan_concurrency) - 1
        self.seconds += self._latency
        self.seconds += max(nbytes / self._bandwidth, count * REQUEST_SECONDS + waits * self._latency)
        self.log.requests += count
        self.log.nbytes += nbytes
        bodies = []
        for span in spans:
            self._file.seek(span.address)
            bodies.append(self._file.read(span.nbytes))
        return bodies


def reckon(path: Path, network: Network, policy: NetworkPolicy) -> str:
    """Seconds, rounds, requests and megabytes of one translation."""
    with ReckonedSource(path, network, policy) as source:
        translate_source(source, Location.parse(path), Options())
        log = source.log
        return f"{source.seconds:.2f} s {log.rounds}/{log.requests}/{log.nbytes / 1e6:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Reckon how long translations would take in various networks.")
    parser.add_argument("--directory", type=Path, default=default_directory())
    parser.add_argument("--files", default="", help="beginnings of names: " + ", ".join(MAKERS))
    parser.add_argument("--set", default="", metavar="NAME=VALUE,...", help="values of a number of the policy")
    arguments = parser.parse_args()
    name, _, values = arguments.set.partition("=")
    variants: list[dict[str, Any]] = [{name: float(value)} for value in values.split(",") if value] or [{}]
    print_machine()
    rows = []
    for file in [file for file in MAKERS if is_chosen(file, arguments.files)]:
        path = MAKERS[file](arguments.directory)
        for variant in variants:
            label = ", ".join(f"{name}={value:g}" for name, value in variant.items()) or "as it is"
            rows.append((file, label, *(reckon(path, network, NetworkPolicy(**variant)) for network in NETWORKS)))
    print_table("Seconds, rounds/requests/MB", ("file", "policy", *map(str, NETWORKS)), rows)


if __name__ == "__main__":
    main()

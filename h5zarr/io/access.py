"""How to open something: storage options, network policy, limits and allowed places, passed down as one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from h5zarr.io.location import Location
from h5zarr.io.network import USUAL_NETWORK, NetworkPolicy
from h5zarr.io.protocols import grammar_of, protocol_of
from h5zarr.io.urls import split_chain
from h5zarr.limits import USUAL, Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How to open files. `Access()` has no storage options and the default policy and limits.

    - `storage_options`: for the file systems of fsspec, either for all of them or by protocol. They may be secret.
    - `anon`: read from the cloud without credentials.
    - `network`: how to read over a network.
    - `limits`: the most resources one input may use.
    - `allow`: directories, as paths or URLs, in which the input may name other files.
    """

    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    anon: bool = False
    network: NetworkPolicy = USUAL_NETWORK
    limits: Limits = USUAL
    allow: tuple[str, ...] = ()

    @classmethod
    def from_options(
        cls,
        storage_options: Mapping[str, Any] | None = None,
        network: Mapping[str, Any] | None = None,
        limits: Mapping[str, int] | Limits | None = None,
        allow: Sequence[str] = (),
        *,
        anon: bool = False,
    ) -> Self:
        """Return the value for the options of a public function. Raises TypeError or ValueError for invalid options."""
        for name, value in (("storage_options", storage_options), ("network", network)):
            if not isinstance(value, Mapping | None):
                raise TypeError(f"{name} must be a dict, not {type(value).__name__}")
        if not isinstance(limits, Mapping | Limits | None):
            raise TypeError(f"limits must be a dict, not {type(limits).__name__}")
        if isinstance(allow, str):
            raise TypeError("allow must be a list of paths and URLs, not a single string")
        return cls(
            storage_options=dict(storage_options or {}),
            anon=anon,
            network=NetworkPolicy.from_mapping(network) if network else USUAL_NETWORK,
            limits=limits if isinstance(limits, Limits) else Limits.from_mapping(limits) if limits else USUAL,
            allow=tuple(allow),
        )

    def options_for(self, place: str | Location) -> Mapping[str, Any]:
        """Return the storage options for one file: all of them, or those for its protocol.

        Options are grouped by protocol if every value is a mapping and every key is an fsspec protocol. For a chain of
        URLs they stay grouped, as fsspec expects, but only the protocols of its own links are kept.
        """
        links = place.links if isinstance(place, Location) else split_chain(place)
        options = self._stated_for(links)
        if not self.anon:
            return options
        protocol, anonymous = protocol_of(links[-1]), grammar_of(links[-1]).anonymous
        if not anonymous or len(links) == 1:
            return {**anonymous, **options}
        return {**options, protocol: {**anonymous, **options.get(protocol, {})}}

    def _stated_for(self, links: list[str]) -> Mapping[str, Any]:
        options = self.storage_options
        if not options or not all(isinstance(value, Mapping) for value in options.values()):
            return options
        from fsspec import available_protocols  # type: ignore[import-untyped, unused-ignore]

        if not set(options) <= set(available_protocols()):
            return options
        if len(links) > 1:
            chained = {link.partition("://")[0] for link in links}
            return {protocol: own for protocol, own in options.items() if protocol in chained}
        found: Mapping[str, Any] = options.get(protocol_of(links[0]), {})
        return found


USUAL_ACCESS = Access()

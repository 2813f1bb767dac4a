"""Tools for filter modules: named settings, size limits, optional packages, array types."""

from __future__ import annotations

import importlib
from dataclasses import asdict, dataclass
from typing import Any, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from h5zarr.errors import MalformedFile, PackageMissing, Unsupported

Values: TypeAlias = tuple[int, ...]  # the client data of a filter
Codec: TypeAlias = dict[str, Any]  # a codec as Zarr v3 metadata has it
Bytes: TypeAlias = NDArray[np.uint8]
Numbers: TypeAlias = NDArray[Any]

OWN_CODEC = "h5zarr.filter"  # Zarr codec for every filter that Zarr and numcodecs lack; its setting `filter` says which


# --- settings: client data by name


class FilterSettings(Protocol):
    """The client data of one filter with named fields, which are also the configuration of its codec.

    The constructor and `from_values` raise ValueError for impossible settings.
    """

    @classmethod
    def from_values(cls, values: Values) -> Self: ...

    def to_values(self) -> Values: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientData:
    """The settings of a filter that has no `Settings` of its own: the client data as a list of integers."""

    values: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.values, (list, tuple)):
            raise ValueError(f"values must be a list of integers, not {self.values!r}")
        object.__setattr__(self, "values", tuple(self.values))  # JSON has lists
        for value in self.values:
            check(value, "values", 0, 2**32 - 1)

    @classmethod
    def from_values(cls, values: Values) -> Self:
        return cls(values=values)

    def to_values(self) -> Values:
        return self.values


AnySettings = TypeVar("AnySettings", bound=FilterSettings)


def settings_of(kind: type[AnySettings], values: Values) -> AnySettings:
    """Return client data as named settings. Raises MalformedFile if they are impossible."""
    try:
        return kind.from_values(values)
    except ValueError as error:
        name = kind.__module__.rpartition(".")[2]
        raise MalformedFile(f"filter {name} has impossible client data {values}: {error}") from error


def configuration_of(settings: FilterSettings) -> dict[str, Any]:
    """Return the settings as a JSON object."""
    found = asdict(settings)  # type: ignore[call-overload]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def own_codec(filter_name: str, settings: FilterSettings) -> Codec:
    """Return h5zarr's own Zarr codec for a filter, as Zarr v3 metadata has it."""
    return {"name": OWN_CODEC, "configuration": {"filter": filter_name, **configuration_of(settings)}}


def first(values: Values, *, default: int) -> int:
    """Return the first value, or `default` if there is no client data."""
    return values[0] if values else default


def signed(value: int) -> int:
    """Return the signed number that an unsigned value of the client data represents."""
    return value - (1 << 32) if value >= 1 << 31 else value


def check(value: object, name: str, least: int, greatest: int) -> None:
    """Raise ValueError unless `value` is an integer from `least` to `greatest`."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= greatest:
        raise ValueError(f"{name} must be an integer from {least} to {greatest}, not {value!r}")


def check_choice(value: object, name: str, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless `value` is one of `choices`."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


def described(values: Values, filter_name: str, required: int, defaults: Values) -> Values:
    """Return the client data with defaults filled in. The first `required` values must be present."""
    if len(values) < required:
        raise ValueError(f"{filter_name} needs at least {required} values, not {len(values)}")
    return values[: required + len(defaults)] + defaults[max(0, len(values) - required) :]


# --- limits


def most(nbytes: int) -> int:
    """Return the most bytes that any filter of a chunk may return, if the unfiltered chunk has `nbytes`.

    Filters in the middle of a pipeline may return more than the chunk has: a checksum adds four bytes, and compressors
    add their framing to incompressible content. No HDF5 filter adds more than an eighth.
    """
    return nbytes + nbytes // 8 + 4096


def check_room(given: int, nbytes: int, what: str) -> None:
    """Raise MalformedFile unless a filter may return `given` bytes. Call it before you allocate them."""
    if given > most(nbytes):
        raise MalformedFile(f"{what} claims to hold {given} bytes, but the chunk has {nbytes}")


# --- optional packages


class FilterPackageMissing(Unsupported, PackageMissing):
    """The filter is known, but the package that decodes it is not installed. Only its arrays are left out."""

    remedy = "Install it, or all packages for filters: pip install blosc2 imagecodecs zfpy"


def load(package: str, filter_name: str) -> Any:
    """Import and return an optional package. Import late: such packages are slow to import and rarely needed."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        name = package.partition(".")[0]
        remedy = f"Install it: pip install {name}"
        failure = FilterPackageMissing(f"filter {filter_name} needs the package {name}", remedy=remedy)
        failure.name = name
        raise failure from error

"""Client data by name: what the `Settings` of the filters share."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar, Protocol, Self, TypeVar

from h5zarr.errors import MalformedFile


class FilterSettings(Protocol):
    """The client data of one filter with its fields named, as a codec's configuration has them.

    Making one with values that cannot be raises ValueError, and so does `from_values`.
    """

    filter_name: ClassVar[str]

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self: ...

    def to_values(self) -> tuple[int, ...]: ...


AnySettings = TypeVar("AnySettings", bound=FilterSettings)


def settings_of(kind: type[AnySettings], values: tuple[int, ...]) -> AnySettings:
    """Return the client data of a file by name; values that cannot be are the file's fault."""
    try:
        return kind.from_values(values)
    except ValueError as error:
        raise MalformedFile(f"filter {kind.filter_name} has impossible client data {values}: {error}") from error


def configuration_of(settings: FilterSettings) -> dict[str, Any]:
    """Return the settings by name, as JSON has them."""
    found = asdict(settings)  # type: ignore[call-overload]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def first(values: tuple[int, ...], *, default: int) -> int:
    """Return the first value, or `default` where there is no client data."""
    return values[0] if values else default


def signed(value: int) -> int:
    """Return a value of the client data, which are unsigned, as the signed number that was meant."""
    return value - (1 << 32) if value >= 1 << 31 else value


def check(value: object, name: str, least: int, greatest: int) -> None:
    """Raise ValueError unless `value` is an integer from `least` to `greatest`."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= greatest:
        raise ValueError(f"{name} must be an integer from {least} to {greatest}, not {value!r}")


def check_choice(value: object, name: str, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless `value` is one of `choices`."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


def described(values: tuple[int, ...], filter_name: str, required: int, defaults: tuple[int, ...]) -> tuple[int, ...]:
    """Return the client data, of which the first `required` must be there and the others have defaults."""
    if len(values) < required:
        raise ValueError(f"filter {filter_name} needs {required} values of client data, not {len(values)}")
    return values[: required + len(defaults)] + defaults[max(0, len(values) - required) :]

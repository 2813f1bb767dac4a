"""The formats of an index: those of containers, and none, if only its cubes are wanted."""

from __future__ import annotations

from h5zarr.containers import registry
from h5zarr.containers.container import Container
from h5zarr.errors import ArgumentError

NO_OUTPUT = "none"


def output_formats() -> dict[str, str]:
    """Return the formats, and the suffix of each; that of `none` is empty."""
    found = {
        name: suffix for container in reversed(registry.CONTAINERS) for name, suffix in container.traits.formats.items()
    }
    return {**found, NO_OUTPUT: ""}


def container_of_format(name: str) -> Container | None:
    """Return the container with a format of this name; None for `none`. Raises ArgumentError for an unknown name."""
    if name == NO_OUTPUT:
        return None
    found = next((container for container in registry.CONTAINERS if name in container.traits.formats), None)
    if found is None:
        raise ArgumentError(f"format is {name!r}, but must be one of {', '.join(output_formats())}")
    return found


def container_of_output(name: str) -> Container | None:
    """Return the container of an output with this name; None if it has the suffix of none."""
    formats = [one for one, suffix in output_formats().items() if suffix and name.endswith(suffix)]
    return container_of_format(formats[0]) if formats else None

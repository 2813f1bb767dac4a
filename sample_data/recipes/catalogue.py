"""The list of sample files: what each is called, what it exercises, and the function that makes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .timestamps import fix_timestamps

Recipe = Callable[..., None]


class Unavailable(Exception):
    """A recipe needs a package, or a function of libhdf5, that is not here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One file to make: `recipe(path, **arguments)` writes it, and its companions beside it."""

    name: str
    theme: str
    section: str
    recipe: Recipe
    arguments: dict[str, Any] = field(default_factory=dict)
    companions: tuple[str, ...] = ()

    def write(self, folder: Path) -> Path:
        """Write the file into `folder` and return its path. Raises Unavailable when something it needs is missing."""
        path = folder / self.name
        path.unlink(missing_ok=True)
        self.recipe(path, **self.arguments)
        fix_timestamps(path)
        return path


SAMPLES: dict[str, Sample] = {}


def sample(
    name: str,
    theme: str,
    *,
    libver: str | tuple[str, ...] = (),
    companions: tuple[str, ...] = (),
    **arguments: Any,
) -> Callable[[Recipe], Recipe]:
    """Register a recipe under a file name, with the one line that the README says about it.

    A name with `{libver}` in it stands for one file per format version given in `libver`.
    """
    versions = (libver,) if isinstance(libver, str) else libver

    def register(recipe: Recipe) -> Recipe:
        for version in versions or (None,):
            given = arguments if version is None else {"libver": version, **arguments}
            filename = name.format(libver=version)
            if filename in SAMPLES:
                raise ValueError(f"two recipes for {filename}")
            SAMPLES[filename] = Sample(
                name=filename,
                theme=theme.format(libver=version),
                section=recipe.__module__.rpartition(".")[2],
                recipe=recipe,
                arguments=given,
                companions=companions,
            )
        return recipe

    return register

"""The recipe of a cube: what it was made from, and how. It is kept with the cube, so that it can be updated."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from h5zarr.commands.combine.along import Along, AlongInput, parse_along
from h5zarr.commands.combine.settings import Choices
from h5zarr.commands.translate.options import Options, make_options
from h5zarr.commands.translate.translation import Translation
from h5zarr.errors import ArgumentError
from h5zarr.io.location import Location
from h5zarr.zarr_model.hierarchy import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The options of `h5zarr.combine` that determine a cube. `along` is None if one of them is a function.

    `files` are patterns for the names of files, if the cube does not consist of all that the sources have.
    """

    sources: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    along: tuple[str, ...] | None = None
    on_duplicate: str = "refuse"
    constant: str = "refuse"
    attributes: str = "first"
    group: str = "/"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_inline_bytes: int | None = None

    @property
    def choices(self) -> Choices:
        return Choices(on_duplicate=self.on_duplicate, constant=self.constant, attributes=self.attributes)

    @property
    def options(self) -> Options:
        how: dict[str, Any] = {"group": self.group, "include": self.include, "exclude": self.exclude}
        return make_options(**how, max_inline_bytes=self.max_inline_bytes)

    def axes(self, along: AlongInput | None = None) -> tuple[Along, ...]:
        """Return the axes; `along` if given. Raises ArgumentError if they were functions, which are not recorded."""
        if along is not None:
            return parse_along(along)
        if self.along is None:
            what = "the coordinates of this cube come from a function, which is not recorded"
            raise ArgumentError(what, remedy="Give the same function again, with along=.")
        return parse_along(self.along) if self.along else ()

    def to_json(self) -> dict[str, Json]:
        """Return the recipe as JSON, without what is usual."""
        made: dict[str, Json] = {"along": None if self.along is None else list(self.along)}
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name != "along" and value != getattr(USUAL_RECIPE, one.name):
                made[one.name] = list(value) if isinstance(value, tuple) else value
        return made

    @classmethod
    def from_json(cls, document: Mapping[str, Json]) -> Self:
        """Return the recipe that `to_json` encoded. Values of other forms, or of later versions, are ignored."""
        found: dict[str, Any] = {}
        for one in fields(cls):
            value = document.get(one.name)
            if isinstance(value, list) and all(isinstance(text, str) for text in value):
                found[one.name] = tuple(value)
            elif isinstance(value, str | int) and not isinstance(getattr(USUAL_RECIPE, one.name), tuple):
                found[one.name] = value
        return cls(**found)


USUAL_RECIPE = Recipe()


def name_sources(sources: str | os.PathLike[str] | Translation | Iterable[Any]) -> tuple[str, ...]:
    """Return what the user gave, as absolute paths and URLs without secrets. Results of a translation are files."""
    given = [sources] if isinstance(sources, str | os.PathLike | Translation) else list(sources)
    named = [one.hierarchy.urls[0] if isinstance(one, Translation) else os.fspath(one) for one in given]
    return tuple(_absolute(Location.parse(one)) for one in named)


def _absolute(location: Location) -> str:
    return location.without_secrets() if location.path is None else location.absolute()


def along_texts(along: Sequence[Along]) -> tuple[str, ...] | None:
    """Return the axes as text; None if the coordinates of one come from a function."""
    texts = [one.text for one in along]
    return None if None in texts else tuple(text for text in texts if text is not None)

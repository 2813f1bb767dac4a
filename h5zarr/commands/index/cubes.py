"""Cubes that an index keeps up to date: one dataset of all its files, or of some of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Self

from h5zarr.commands.catalog.place import STATE, Place
from h5zarr.commands.combine.pieces import UNCUT
from h5zarr.commands.combine.recipe import USUAL_RECIPE, Recipe
from h5zarr.commands.translate.options import Options
from h5zarr.commands.update.shards import FOLDER, ShardStore
from h5zarr.commands.update.update_result import CubeUpdate
from h5zarr.commands.update.updating import ON_MISFIT, HowToUpdate, bring_up_to_date
from h5zarr.containers.container import Output
from h5zarr.containers.registry import check_output_before
from h5zarr.display import counted, readable
from h5zarr.errors import ArgumentError, H5ZarrError
from h5zarr.io.access import Access
from h5zarr.io.location import Location

RECORD = f"{STATE}/cubes"
_LISTS = {"files", "along", "include", "exclude"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeSpec:
    """A cube: where it is, how it is made, and what becomes of files that do not fit."""

    out: str
    recipe: Recipe = USUAL_RECIPE
    on_misfit: str = "skip"

    def __post_init__(self) -> None:
        if self.on_misfit not in ON_MISFIT:
            raise ArgumentError(f"on_misfit is {self.on_misfit!r}, but must be one of {', '.join(ON_MISFIT)}")
        self.recipe.choices  # noqa: B018  # raises for an unknown choice
        if self.recipe.along:
            self.recipe.axes()

    @classmethod
    def of(cls, given: str | Mapping[str, Any]) -> Self:
        """Return the cube that text or a table describes: `out`, `on_misfit`, and the options of a recipe.

        Raises ArgumentError for what makes no sense.
        """
        table = describe_cube(given)
        known = {"out", "on_misfit", *(one.name for one in fields(Recipe))} - {"sources"}
        for name in table.keys() - known:
            close = get_close_matches(name, known, 1)
            hint = f": did you mean {close[0]}?" if close else f"; there are {', '.join(sorted(known))}"
            raise ArgumentError(f"there is no option {name!r} for a cube{hint}")
        own = {name: table.pop(name) for name in ("out", "on_misfit") if name in table}
        if not isinstance(own.get("out"), str) or not own["out"]:
            raise ArgumentError("a cube needs `out`, such as cube.parquet")
        for name in _LISTS & table.keys():
            table[name] = (table[name],) if isinstance(table[name], str) else tuple(table[name])
        if "max_inline_bytes" in table:
            table["max_inline_bytes"] = int(table["max_inline_bytes"])
        return cls(**own, recipe=Recipe(**table))


def describe_cube(given: str | Mapping[str, Any]) -> dict[str, Any]:
    """Return the table that `CUBE[,NAME=VALUE...]` describes. Names of lists may be repeated."""
    if not isinstance(given, str):
        return dict(given)
    out, *pairs = given.split(",")
    found: dict[str, Any] = {"out": out}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ArgumentError(f"cube {given!r}: expected NAME=VALUE instead of {pair!r}")
        found[name] = [*found.get(name, ()), value] if name in _LISTS else value
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeOutcome:
    """What became of a cube in a run: what was done, or the error that kept it from being updated."""

    out: str
    done: CubeUpdate | None = None
    error: str = ""
    remedy: str = ""

    @property
    def is_failure(self) -> bool:
        """Whether the cube could not be updated, has no files, or a file was found not to fit."""
        return self.done is None or bool(self.done.misfits) or not self.done.file_count

    def to_json(self) -> dict[str, Any]:
        """Return the outcome for machines."""
        if self.done is None:
            return {"cube": self.out, "error": self.error, "remedy": self.remedy}
        return self.done.to_json()

    def lines(self) -> Iterator[str]:
        """Yield what to tell people."""
        if self.done is None:
            yield f"{readable(self.error)}"
            if self.remedy:
                yield f"  {readable(self.remedy)}"
            return
        done = self.done
        for misfit in done.misfits:
            yield f"{readable(done.location)}: {readable(misfit.url)} is left out: {readable(misfit.reason)}"
        if not done.file_count:
            yield f"{readable(done.location)}: there is no file for it, so it does not exist yet"
            return
        counts = [(len(done.added), "added"), (len(done.replaced), "replaced"), (len(done.removed), "removed")]
        what = ", ".join(f"{count:,} {name}" for count, name in counts if count) or "up to date"
        misfits = len(done.misfits) + len(done.known_misfits)
        left = f", {counted(misfits, 'misfit')} left out" if misfits else ""
        left += f", {counted(len(done.vanished), 'vanished file')}" if done.vanished else ""
        yield f"{readable(done.location)}: {what}; {counted(done.file_count, 'file')}{left} · {done.seconds:.2f} s"


def check_cubes(specs: Sequence[CubeSpec], place: Place, access: Access, options: Mapping[str, Any] | None) -> None:
    """Raise OutputError for a cube that is certain to fail, before any file is read."""
    names = [spec.out for spec in specs]
    if len(set(names)) < len(names):
        raise ArgumentError("two cubes have the same place")
    for spec in specs:
        output = Output(location=Location.parse(spec.out), storage_options=options, network=access.network)
        check_output_before(output, Location.parse(place.url), 3, is_file=False)


def options_for_cubes(options: Options, name: str, specs: Sequence[CubeSpec]) -> Options:
    """Return how to read files of which nothing but cubes is made: as `combine` does, with arrays left whole.

    Raises ArgumentError if no cube is given, or options for the references of each file.
    """
    if not specs:
        what = "format='none' writes no references for each file, and there is no cube to make of them"
        raise ArgumentError(what, remedy="Name a cube, or choose another format.")
    if options != Options() or name != "{path}":
        what = "format='none' writes no references for each file, so they need no names and no options"
        raise ArgumentError(what, remedy="Leave out name=, group=, include= and the like, or give them to the cubes.")
    return replace(options, chunk_nbytes=UNCUT)


def follow(
    spec: CubeSpec, place: Place, access: Access, options: Mapping[str, Any] | None, *, prune: bool
) -> CubeOutcome:
    """Bring one cube up to date with the index. A cube that cannot be updated stays as it is."""
    output = Output(location=Location.parse(spec.out), storage_options=options, network=access.network)
    index = place.url.rstrip("/") + "/"
    own = Access(
        storage_options=access.storage_options or dict(options or {}),
        anon=access.anon,
        network=access.network,
        limits=access.limits,
        allow=access.allow,
    )
    shards = ShardStore(place, spec.recipe, own)
    how = HowToUpdate(on_misfit=spec.on_misfit, prune=prune, shards=shards if shards.is_possible else None)
    try:
        done = bring_up_to_date(output, own, how, (index,), replace(spec.recipe, sources=(index,)))
    except H5ZarrError as error:
        return CubeOutcome(out=output.shown, error=str(error), remedy=error.remedy)
    return CubeOutcome(out=output.shown, done=done)


def shard_stores(specs: Sequence[CubeSpec], place: Place, access: Access) -> list[ShardStore]:
    """Return where workers leave what the cubes need of the files that they read; one for each way to join files."""
    found = {store.folder: store for spec in specs if (store := ShardStore(place, spec.recipe, access)).is_possible}
    return list(found.values())


def discard_shards(place: Place) -> None:
    """Remove all shards, after all cubes have their files."""
    place.remove(FOLDER)


def record_cubes(place: Place, outcomes: Sequence[CubeOutcome]) -> None:
    """Keep what became of the cubes beside the catalog, for `h5zarr status`."""
    time = datetime.now(UTC).isoformat(timespec="seconds")
    place.write(RECORD, json.dumps([{"time": time, **one.to_json()} for one in outcomes], indent=2).encode() + b"\n")


def read_cubes(place: Place) -> list[dict[str, Any]]:
    """Return what became of the cubes in the last run that had any."""
    try:
        found = json.loads(place.read(RECORD) or b"[]")
    except ValueError:
        return []
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def recorded_lines(cubes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the state of the cubes, as `h5zarr status` shows it."""
    for one in cubes:
        name = readable(str(one.get("cube")))
        if "error" in one:
            yield f"cube {name}: could not be updated at {one.get('time')}: {readable(str(one['error']))}"
            continue
        misfits = [*one.get("misfits", []), *one.get("known_misfits", [])]
        yield f"cube {name}: {counted(int(one.get('files', 0)), 'file')}, updated at {one.get('time')}"
        for misfit in misfits:
            yield f"  {readable(str(misfit.get('url')))} is left out: {readable(str(misfit.get('reason')))}"

"""An archive that grows hour by hour, with all that happens to archives, and what a cube of it should contain."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import xarray as xr

WIDTH = 600
UNITS = "hours since 2024-01-01"


def write_granule(path: Path, hours: list[int], seed: int, *, width: int = WIDTH, zlib: bool = True) -> None:
    """Write v(time, x) with random values, which are too long to be inlined. The file appears at once."""
    beside = path.with_suffix(".part")
    with netCDF4.Dataset(beside, "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", width)
        time = file.createVariable("time", "i4", ("time",))
        time.units = UNITS
        time[:] = hours
        file.createVariable("x", "f8", ("x",))[:] = np.arange(width)
        how: dict[str, Any] = {"chunksizes": (1, width), "zlib": zlib}
        variable = file.createVariable("v", "f4", ("time", "x"), fill_value=-999.0, **how)
        variable[:] = np.random.default_rng(seed).normal(size=(len(hours), width))
        file.revision = seed
    beside.rename(path)


@dataclass
class LivingArchive:
    """Files named by hour. `hours` has the hours of each readable file, and `order` what a cube contains of them."""

    folder: Path
    chance: random.Random
    hour: int = 0
    hours: dict[str, list[int]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    late: list[int] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    inside: set[str] = field(default_factory=set)
    events: list[str] = field(default_factory=list)

    def write(self, name: str, hours: list[int]) -> None:
        """Write a file, which may exist already."""
        write_granule(self.folder / name, hours, self.chance.randrange(10**9))
        self.changed.add(name)
        self.hours[name] = hours
        self.broken.discard(name)

    def remove(self, name: str) -> None:
        (self.folder / name).unlink()
        self.hours.pop(name, None)
        self.broken.discard(name)

    def pass_hour(self) -> None:
        """Let an hour pass. Usually one file arrives; now and then something else happens as well."""
        self.hour += 1
        what = self.chance.random()
        if what < 0.15:
            self.late.append(self.hour)
            self._note("late")
        else:
            self.write(f"h{self.hour:04}.nc", [2 * self.hour, 2 * self.hour + 1][: self.chance.choice([2, 2, 1])])
        for event, share in (
            (self._arrive_late, 0.2),
            (self._replace, 0.15),
            (self._duplicate, 0.1),
            (self._break, 0.08),
            (self._withdraw, 0.08),
            (self._mend, 0.1),
        ):
            if self.chance.random() < share:
                event()

    def _note(self, event: str) -> None:
        self.events.append(event)

    def _pick(self, names: Any) -> str | None:
        found = sorted(names)
        return self.chance.choice(found) if found else None

    def _arrive_late(self) -> None:
        if self.late:
            hour = self.late.pop(self.chance.randrange(len(self.late)))
            self.write(f"h{hour:04}.nc", [2 * hour, 2 * hour + 1])
            self._note("arrived late")

    def _replace(self) -> None:
        if (name := self._pick(self.hours)) is not None:
            self.write(name, self.hours[name])
            self._note("replaced")

    def _duplicate(self) -> None:
        if (name := self._pick(self.hours)) is not None:
            self.write(f"again-{name.removeprefix('again-')}", self.hours[name][:1])
            self._note("duplicate")

    def _break(self) -> None:
        if len(self.hours) > 1 and (name := self._pick(self.hours)) is not None:
            content = (self.folder / name).read_bytes()
            (self.folder / name).write_bytes(content[: self.chance.randrange(1, len(content) // 2)])
            self.broken.add(name)
            self.changed.add(name)
            del self.hours[name]
            self._note("broken")

    def _mend(self) -> None:
        if (name := self._pick(self.broken)) is not None:
            hour = int(name[-7:-3])
            self.write(name, [2 * hour, 2 * hour + 1])
            self._note("mended")

    def _withdraw(self) -> None:
        if len(self.hours) > 1 and (name := self._pick({*self.hours, *self.broken})) is not None:
            self.remove(name)
            self._note("withdrawn")

    def settle(self) -> list[Path]:
        """Return the files that a cube should have after an update: those that stay, then those that fit in."""
        changed = {name for name in self.inside if name in self.changed}
        kept = {name for name in self.inside if name in self.hours and name not in self.changed}
        taken = {hour for name in kept for hour in self.hours[name]}
        others = sorted(self.hours.keys() - kept - changed)
        for name in (*sorted(changed & self.hours.keys()), *others):
            if not taken & set(self.hours[name]):
                kept.add(name)
                taken |= set(self.hours[name])
        self.inside, self.changed = kept, set()
        return sorted(self.folder / name for name in kept)


def whole(paths: list[Path]) -> xr.Dataset:
    """Return what xarray makes of these files."""
    opened = [xr.open_dataset(path, engine="netcdf4").load() for path in paths]
    for one in opened:
        one.close()
    opened.sort(key=lambda one: one.time.values[0])
    how: dict[str, Any] = {"data_vars": "minimal", "coords": "minimal", "compat": "override", "join": "exact"}
    return xr.concat(opened, "time", combine_attrs="override", **how)

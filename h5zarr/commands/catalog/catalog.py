"""The catalog of an index: a Parquet table with one row per source, which any table tool can query.

During a run, finished rows are added as small files of the same form, called *parts*. They are merged into the catalog
now and then, and at the end. The next run reads both, so it knows what was finished however the run ended. Every part
has a unique name, and only the run that merged a part removes it: two concurrent runs lose nothing but time.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from h5zarr.commands.catalog.place import STATE, Place
from h5zarr.commands.catalog.rows import Known, Row
from h5zarr.packages import require_catalog

if TYPE_CHECKING:
    from h5zarr.commands.catalog.catalog_table import Stored

T = TypeVar("T", Row, Known)
CATALOG = f"{STATE}/catalog.parquet"
PARTS = f"{STATE}/parts"
_MOST_READS = 10  # while other runs merge; after that we use what we have, and some work is done twice
_PART = re.compile(rf"{PARTS}/\d+-\w+\.parquet")


class Catalog:
    """All rows, by source. `flush` writes added rows as a part, and `fold` merges everything into one table.

    If `rows` is given, the catalog starts from them, and existing files are only looked up for removal. Written rows
    are kept in their encoded form, which takes a tenth of the memory.
    """

    def __init__(self, place: Place, rows: Iterable[Row] | None = None) -> None:
        require_catalog(place.shown)
        self._place = place
        self._added: dict[str, Row | None] = {row.source: row for row in rows or ()}  # None: the row was removed
        self._stored = _tables().Stored(None, CATALOG)
        self._parts = {name: _tables().Stored(None, name) for name in self._find_parts()}
        if rows is not None:
            place.check_own(CATALOG)
        else:
            for _ in range(_MOST_READS):
                if self._read():
                    break

    def _find_parts(self) -> list[str]:
        """Return the names of the parts, oldest first."""
        return sorted(name for name in self._place.names(PARTS) if _PART.fullmatch(name))

    def _read(self) -> bool:
        """Read the table and the parts. Return False if another run merged one of the parts in the meantime."""
        names = self._find_parts()
        self._stored = self._open(CATALOG)
        self._parts = {name: self._open(name) for name in names}
        # otherwise its rows are in a newer table than the one read
        return all(part.is_there for part in self._parts.values())

    def _open(self, name: str) -> Stored:
        stored: Stored = _tables().Stored(self._place.read(name), f"{self._place.shown}/{name}")
        stored.check()
        return stored

    @property
    def has_parts(self) -> bool:
        """Whether rows are not merged yet: a run is active, or has ended early."""
        return bool(self._parts)

    def rows(self) -> Iterator[Row]:
        """Yield all rows. Rows in files are decoded lazily."""
        yield from (row for row in self._added.values() if row is not None)
        yield from self._newest(lambda stored: stored.rows())

    def known(self) -> Iterator[Known]:
        """Yield the part of each row that planning needs: much less than the whole row."""
        yield from (row.known for row in self._added.values() if row is not None)
        yield from self._newest(lambda stored: stored.known())

    def _newest(self, read: Callable[[Stored], Iterator[T]]) -> Iterator[T]:
        """Yield the rows in files, newest file first, skipping sources already seen."""
        seen = set(self._added)
        for part in reversed(self._parts.values()):
            found = [one for one in read(part) if one.source not in seen]
            yield from found
            seen.update(one.source for one in found)
        yield from (one for one in read(self._stored) if one.source not in seen)

    def sources(self) -> set[str]:
        """Return the names of all sources."""
        return {one.source for one in self.known()}

    def find(self, sources: Iterable[str]) -> list[Row]:
        """Return the rows of the given sources."""
        wanted = set(sources)
        return [row for row in self.rows() if row.source in wanted] if wanted else []

    def add(self, row: Row) -> None:
        """Add a row, replacing the previous row of its source."""
        self._added[row.source] = row

    def remove(self, source: str) -> None:
        """Remove the row of a source. Only `fold` writes removals."""
        self._added[source] = None

    @property
    def unwritten_count(self) -> int:
        return len(self._added)

    @property
    def part_count(self) -> int:
        return len(self._parts)

    def flush(self) -> None:
        """Write the rows added since the last flush as a part."""
        rows = [row for row in self._added.values() if row is not None]
        if not rows:
            return
        # Names sort in writing order across runs, without a clock: a wrong one could make an old row win.
        last = max((int(name.rpartition("/")[2].partition("-")[0]) for name in self._parts), default=0)
        name = f"{PARTS}/{last + 1:012d}-{secrets.token_hex(6)}.parquet"
        content = _tables().encode_table(_tables().make_table(rows))
        self._place.write(name, content)
        self._parts[name] = _tables().Stored(content, name)
        self._added = {source: None for source, row in self._added.items() if row is None}

    def fold(self) -> None:
        """Write everything into one table, and remove the parts it contains."""
        if not self._added and not self._parts:
            return
        added = _tables().make_table(row for row in self._added.values() if row is not None)
        stored = (one.table() for one in (*reversed(self._parts.values()), self._stored))
        removed = (source for source, row in self._added.items() if row is None)
        content = _tables().encode_table(_tables().merge_tables((added, *stored), removed))
        self._place.write(CATALOG, content)
        self._stored = _tables().Stored(content, self._stored.shown)
        parts, self._parts, self._added = self._parts, {}, {}
        for name in parts:
            self._place.remove(name)


def _tables() -> ModuleType:
    """Return the module that reads and writes tables. It needs pyarrow, which `import h5zarr` and `help` do without."""
    from h5zarr.commands.catalog import catalog_table

    return catalog_table

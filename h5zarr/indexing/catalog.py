"""The catalog of an index: a table of rows as Parquet, which any tool for tables can query.

While a run goes on, what is finished is added in small files of the same form, its *parts*; in the end, and now and
then, they are folded into the catalog. So whatever ends a run, the next one knows what was finished: it reads both. A
part has a name of its own, and is removed only by those who have folded it in: two runs at once lose nothing but time.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from h5zarr.indexing.place import STATE, Place
from h5zarr.indexing.rows import Known, Row
from h5zarr.indexing.table import Stored, encode_table, make_table, merge_tables

T = TypeVar("T", Row, Known)
CATALOG = f"{STATE}/catalog.parquet"
PARTS = f"{STATE}/parts"
_MOST_READS = 10  # while others fold: then what was read has to do, and something is done twice
_PART = re.compile(rf"{PARTS}/\d+-\w+\.parquet")


class Catalog:
    """All rows, by source. What is added is written by `flush`, and folded into the one table by `fold`.

    Given `rows`, it is a new one, and what was there is only looked at to be removed. What has been written is kept as
    it stands in the files, which takes a tenth of the memory.
    """

    def __init__(self, place: Place, rows: Iterable[Row] | None = None) -> None:
        self._place = place
        self._added: dict[str, Row | None] = {row.source: row for row in rows or ()}  # None where one was taken out
        self._stored = Stored(None, CATALOG)
        self._parts = {name: Stored(None, name) for name in self._find_parts()}
        if rows is None:
            for _ in range(_MOST_READS):
                if self._read():
                    break

    def _find_parts(self) -> list[str]:
        """Return the names of the parts, in the order in which they were written."""
        return sorted(name for name in self._place.names(PARTS) if _PART.fullmatch(name))

    def _read(self) -> bool:
        """Read the table and the parts that are not in it yet. Return False where somebody has folded one meanwhile."""
        names = self._find_parts()
        self._stored = self._open(CATALOG)
        self._parts = {name: self._open(name) for name in names}
        return all(part.is_there for part in self._parts.values())  # else its rows are in a newer table than this one

    def _open(self, name: str) -> Stored:
        stored = Stored(self._place.read(name), f"{self._place.shown}/{name}")
        stored.check()
        return stored

    def rows(self) -> Iterator[Row]:
        """Yield all rows; those of files are made as they are asked for."""
        yield from (row for row in self._added.values() if row is not None)
        yield from self._newest(lambda stored: stored.rows())

    def known(self) -> Iterator[Known]:
        """Yield of all rows what it takes to make a plan: much less than the rows themselves."""
        yield from (row.known for row in self._added.values() if row is not None)
        yield from self._newest(lambda stored: stored.known())

    def _newest(self, read: Callable[[Stored], Iterator[T]]) -> Iterator[T]:
        """Yield what is in files, and in none that is newer."""
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
        """Return the rows of some sources."""
        wanted = set(sources)
        return [row for row in self.rows() if row.source in wanted] if wanted else []

    def add(self, row: Row) -> None:
        """Put a row in the place of what was known of its source."""
        self._added[row.source] = row

    def remove(self, source: str) -> None:
        """Take out what is known of a source: only `fold` writes that."""
        self._added[source] = None

    @property
    def unwritten_count(self) -> int:
        return len(self._added)

    @property
    def part_count(self) -> int:
        return len(self._parts)

    def flush(self) -> None:
        """Write what was added since the last time, as a part."""
        rows = [row for row in self._added.values() if row is not None]
        if not rows:
            return
        # Names sort as they were written, by whatever run: a clock that is wrong costs a row that is old, and no more.
        last = max((int(name.rpartition("/")[2].partition("-")[0]) for name in self._parts), default=0)
        name = f"{PARTS}/{last + 1:012d}-{secrets.token_hex(6)}.parquet"
        content = encode_table(make_table(rows))
        self._place.write(name, content)
        self._parts[name] = Stored(content, name)
        self._added = {source: None for source, row in self._added.items() if row is None}

    def fold(self) -> None:
        """Write the one table, with all that was added, and remove the parts that are in it."""
        if not self._added and not self._parts:
            return
        added = make_table(row for row in self._added.values() if row is not None)
        stored = (one.table() for one in (*reversed(self._parts.values()), self._stored))
        removed = (source for source, row in self._added.items() if row is None)
        content = encode_table(merge_tables((added, *stored), removed))
        self._place.write(CATALOG, content)
        self._stored = Stored(content, self._stored.shown)
        parts, self._parts, self._added = self._parts, {}, {}
        for name in parts:
            self._place.remove(name)

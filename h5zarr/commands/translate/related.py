"""Related files: the targets of external links, the sources of virtual datasets, and external raw data files.

All of them are located and scanned before anything is interpreted, one level of references at a time. A missing file is
not an error here. A file that exists but cannot be read is an error as soon as its content is needed, and never counts
as missing.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from types import TracebackType
from typing import NamedTuple, Self, TypeAlias, TypeVar

from h5zarr.errors import H5ZarrError, SourceError, SourceGone
from h5zarr.formats import scan_source
from h5zarr.hdf5.model import H5File
from h5zarr.io.access import USUAL_ACCESS, Access
from h5zarr.io.allowed import NotAllowed, is_allowed, is_beside
from h5zarr.io.location import Location, is_local, local_candidates, raw_candidates, sibling_reference, sibling_url
from h5zarr.io.log import RequestLog
from h5zarr.io.source import Identity, Opener, Source, open_source
from h5zarr.io.steps import Step, run
from h5zarr.netcdf4.elsewhere import SAME_FILE, RawFile
from h5zarr.netcdf4.links import Others
from h5zarr.netcdf4.mappings import settle_virtual, spell
from h5zarr.netcdf4.outward import external_links, names_in

T = TypeVar("T")
_MOST_GENERATIONS = 16
_MOST_OPEN = 64  # kept open; more could exceed the system's limits
_AT_ONCE = 8  # remote files opened concurrently


class Wanted(NamedTuple):
    """A file name as stored in the file number `member`, of a raw data file or of a file to scan."""

    member: int
    name: str
    is_raw: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Member:
    """A related file. `url` opens it, `reference` is written into references; `file` is None for a raw data file."""

    url: str
    reference: str
    identity: Identity
    file: H5File | None


_Place: TypeAlias = tuple[str, bool]  # (URL, is a raw data file)
_Outcome: TypeAlias = tuple[Member, Source] | H5ZarrError | None


class Related:
    """A file and the files it refers to, directly or indirectly; see `find_related`. Implements `Elsewhere`."""

    def __init__(self, main: Member, source: Source, opener: Opener, access: Access = USUAL_ACCESS) -> None:
        self.members = [main]
        self._log = RequestLog(is_local=True)  # until a remote one is added
        self._main_source = source
        self._opener = opener
        self._limits = access.limits
        self._allow = access.allow
        self._open: OrderedDict[int, Source] = OrderedDict()
        self._by_url = {(Location.parse(main.url).absolute(), False): 0}
        self._found: dict[Wanted, int | H5ZarrError | None] = {}
        self.unread: dict[str, Identity | None] = {}  # files that do not exist or cannot be scanned
        self._links: dict[tuple[H5File, str], H5File | H5ZarrError] = {}
        self._numbers: dict[H5File, int] = {}
        self._settled: list[H5File | None] = []

    @property
    def file(self) -> H5File:
        """The file itself, its virtual datasets with their actual extent."""
        assert self._settled[0] is not None
        return self._settled[0]

    @property
    def urls(self) -> tuple[str, ...]:
        """The URLs to write into references, by source number."""
        return tuple(member.reference for member in self.members)

    @property
    def log(self) -> RequestLog:
        """The cost so far of reading the file and all others."""
        return _sum([self._main_source.log, self._log, *(source.log for source in self._open.values())])

    @property
    def links(self) -> Others:
        return self._links

    def find(self, file: H5File, name: str) -> H5File | None:
        number = self._numbers[file] if name == SAME_FILE else self._look_up(file, name, is_raw=False)
        return None if number is None else self.members[number].file

    def find_raw(self, file: H5File, name: str) -> RawFile | None:
        found = self._look_up(file, name, is_raw=True)
        return None if found is None else RawFile(found, self.members[found].identity.nbytes)

    def number_of(self, file: H5File) -> int:
        return self._numbers[file]

    def run(self, number: int, step: Step[T]) -> T:
        source = self._source(number)
        return run(step, source.read_many, source.planner)

    def close(self) -> None:
        """Close the files opened here. The file itself stays open, and all scanned metadata stay available."""
        while self._open:
            self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _look_up(self, file: H5File, name: str, *, is_raw: bool) -> int | None:
        wanted = Wanted(self._numbers[file], name, is_raw)
        found = self._outcome(wanted)
        if isinstance(found, H5ZarrError):
            raise found
        return found

    def _outcome(self, wanted: Wanted) -> int | H5ZarrError | None:
        if wanted in self._found:
            return self._found[wanted]
        what = f"{wanted.name!r} was not opened: this file refers to too many others, or through too many levels"
        return SourceError(what, remedy="Allow more, if you trust it: limits={'file_count': NUMBER}.")

    # --- opening

    def _source(self, number: int) -> Source:
        """Return the source of a member, reopened if it was closed."""
        if number == 0:
            return self._main_source
        if number not in self._open:
            member = self.members[number]
            self._keep(number, self._opener(member.url))
            if self._open[number].identity != member.identity:
                raise SourceError(f"{member.reference}: the file has changed while it was read")
        self._open.move_to_end(number)
        return self._open[number]

    def _keep(self, number: int, source: Source) -> None:
        self._open[number] = source
        if len(self._open) > _MOST_OPEN:
            self._let_go()

    def _let_go(self) -> None:
        _, source = self._open.popitem(last=False)
        self._log = _sum([self._log, source.log])
        source.close()

    # --- finding

    def search(self) -> None:
        """Find all related files, breadth first."""
        generation = range(1)
        for _ in range(_MOST_GENERATIONS):
            if not generation:
                break
            files = [(number, self.members[number].file) for number in generation]
            named = [(number, name) for number, file in files if file for name in names_in(file)]
            self._find_all(Wanted(number, one.text, one.is_raw) for number, one in named if not one.is_numbered)
            for number, one in named:
                if one.is_numbered:
                    self._find_numbered(number, one.text)
            generation = range(generation.stop, len(self.members))
        self._index([member.file for member in self.members])
        self._settled = [member.file and settle_virtual(member.file, self) for member in self.members]
        self._index(self._settled)

    def _index(self, files: Sequence[H5File | None]) -> None:
        """Index files by their member number."""
        for number, file in enumerate(files):
            if file is None:
                continue
            self._numbers[file] = number
            for name in external_links(file):
                found = self._outcome(Wanted(number, name))
                other = files[found] if isinstance(found, int) else found
                if other is not None:
                    self._links[file, name] = other

    def _find_numbered(self, member: int, pattern: str) -> None:
        """Find files with a number in their name, up to the first missing one."""
        at_once = 1 if is_local(self.members[member].url) else _AT_ONCE
        for first in count(0, at_once):
            names = [Wanted(member, spell(pattern, number)) for number in range(first, first + at_once)]
            self._find_all(names)
            if not all(isinstance(self._found.get(name), int) for name in names):
                return

    def _find_all(self, names: Iterable[Wanted]) -> None:
        """Find files, several remote ones concurrently."""
        remote: dict[_Place, list[Wanted]] = {}
        for wanted in dict.fromkeys(names):
            if wanted in self._found or len(self.members) + len(remote) >= self._limits.file_count:
                continue
            url = self.members[wanted.member].url
            try:
                if is_local(url):
                    candidates = (raw_candidates if wanted.is_raw else local_candidates)(url, wanted.name)
                    self._found[wanted] = self._find_local(wanted, candidates)
                    if self._found[wanted] is None:
                        self.unread.update(dict.fromkeys(candidates))
                else:
                    other = sibling_url(url, wanted.name)
                    self._check_place(wanted.name, other)
                    remote.setdefault((other, wanted.is_raw), []).append(wanted)
            except H5ZarrError as error:
                self._found[wanted] = error
        if remote:
            self._find_remote(remote)

    def _find_local(self, wanted: Wanted, candidates: list[str]) -> int | H5ZarrError | None:
        for path in candidates:
            if (known := self._by_url.get((path, wanted.is_raw))) is not None:
                return known
            if os.path.exists(path):
                # if it is not allowed, a file of the same name elsewhere is no substitute
                self._check_place(wanted.name, path)
                return self._admit(wanted, path, self._open_member(path, wanted))
        return None

    def _check_place(self, name: str, url: str) -> None:
        """Raise NotAllowed unless a file is below the directory of the first one or below an allowed directory."""
        if not is_beside(self.members[0].url, url) and not is_allowed(url, self._allow):
            raise NotAllowed(
                f"{name!r} is outside the directory of the file that refers to it",
                remedy="If you trust the file, allow the directory: allow=[DIRECTORY].",
            )

    def _find_remote(self, remote: Mapping[_Place, list[Wanted]]) -> None:
        from concurrent.futures import ThreadPoolExecutor  # rarely needed, and importing it would slow every start

        new = [(place, several[0]) for place, several in remote.items() if place not in self._by_url]
        outcomes: dict[_Place, int | H5ZarrError | None] = {}
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for first in range(0, len(new), _MOST_OPEN):  # in batches, because open files hold what they have read
                batch = new[first : first + _MOST_OPEN]
                opened = pool.map(lambda one: self._open_member(one[0][0], one[1]), batch)
                for (place, wanted), outcome in zip(batch, list(opened), strict=True):
                    outcomes[place] = self._admit(wanted, place[0], outcome)
                    if outcome is None:
                        self.unread[place[0]] = None
        for place, several in remote.items():
            found = outcomes[place] if place in outcomes else self._by_url[place]
            self._found.update(dict.fromkeys(several, found))

    def _admit(self, wanted: Wanted, url: str, outcome: _Outcome) -> int | H5ZarrError | None:
        """Add an opened file as a member, and return its number."""
        if outcome is None or isinstance(outcome, H5ZarrError):
            return outcome
        member, source = outcome
        number = len(self.members)
        self.members.append(member)
        self._by_url[url, wanted.is_raw] = number
        self._keep(number, source)
        return number

    def _open_member(self, url: str, wanted: Wanted) -> _Outcome:
        """Return a file and its source; None if it does not exist, the error if it cannot be read."""
        referrer = self.members[wanted.member]
        reference = sibling_reference(referrer.url, referrer.reference, url, wanted.name)
        try:
            source = self._opener(url)
        except SourceError as error:
            return None if isinstance(error, SourceGone) else error
        try:
            file = None if wanted.is_raw else scan_source(source, self._limits)
        except H5ZarrError as error:
            source.close()
            self.unread[url] = source.identity
            return SourceError(str(error.naming(source.url))).with_traceback(None)
        return Member(url=url, reference=reference, identity=source.identity, file=file), source


def find_related(
    source: Source,
    file: H5File,
    url: str,
    access: Access = USUAL_ACCESS,
    *,
    target: str | None = None,
    opener: Opener | None = None,
) -> Related:
    """Return a scanned file with all files it refers to. Close it when nothing more is to be read from them.

    `url` is the user's name for the file, and `target` its name in references. There, related files keep their position
    relative to it. They are opened with the same `access`, or by `opener` if given. They must be below the directory of
    the file, or below one of those in `access.allow`.
    """

    def open_other(url: str) -> Source:
        return open_source(url, access)

    reference = target or Location.parse(url).for_references()[0]
    main = Member(url=url, reference=reference, identity=source.identity, file=file)
    related = Related(main, source, opener or open_other, access)
    try:
        related.search()
    except BaseException:
        related.close()
        raise
    return related


def _sum(logs: list[RequestLog]) -> RequestLog:
    return RequestLog(
        rounds=sum(log.rounds for log in logs),
        requests=sum(log.requests for log in logs),
        nbytes=sum(log.nbytes for log in logs),
        infos=sum(log.infos for log in logs),
        is_local=all(log.is_local for log in logs),
    )

"""Read a file, or a group of it. All objects that can be reached are read in lockstep."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeVar

from h5zarr.errors import H5ZarrError, MalformedFile, Problem, Truncated
from h5zarr.hdf5.cache_image import overlay, read_cache_image
from h5zarr.hdf5.contents import Contents
from h5zarr.hdf5.context import Context
from h5zarr.hdf5.datasets import read_dataset, read_datatype
from h5zarr.hdf5.early import read_early
from h5zarr.hdf5.groups import read_links
from h5zarr.hdf5.header import Message, ObjectHeader, begin_object_header, read_object_header
from h5zarr.hdf5.messages.kinds import Kind
from h5zarr.hdf5.messages.link import decode_link_info
from h5zarr.hdf5.messages.notes import (
    GroupConstants,
    Notes,
    decode_comment,
    decode_group_info,
    decode_modification_time,
    decode_old_modification_time,
    decode_reference_count,
)
from h5zarr.hdf5.model import Attribute, CommittedDatatype, Group, H5File, HardLink, Link, Object
from h5zarr.hdf5.object_attributes import read_attributes
from h5zarr.hdf5.scope import WHOLE, Scope
from h5zarr.hdf5.shared import read_shared_messages
from h5zarr.hdf5.superblock import (
    Superblock,
    apply_extension,
    has_pages,
    read_driver_block,
    read_superblock,
)
from h5zarr.io.span import Pages
from h5zarr.io.steps import Crew, Hints, Step, attempt, both, guarded
from h5zarr.limits import USUAL, LimitReached, Limits

T = TypeVar("T")
_FILE = "/"
_NOTES = frozenset({Kind.MODIFICATION_TIME, Kind.MODIFICATION_TIME_OLD, Kind.REFERENCE_COUNT, Kind.COMMENT})
_MOST_COMPLAINTS = 20  # broken links reported per group
_PATHS_NBYTES = 64 << 20  # limit for all paths together, because a hostile file can make them long


def read_file(url: str, nbytes: int, limits: Limits = USUAL, scope: Scope = WHOLE) -> Step[H5File]:
    """Return the content of the file at `url`, of `nbytes` bytes. Unreadable objects are listed in `problems`.

    Groups outside of `scope` are not entered.
    Raises only if nothing can be returned (no superblock or no root group), or if the file exceeds a limit.
    """
    superblock = yield from read_superblock(nbytes)
    yield from read_driver_block(superblock)
    problems = _check_end(superblock)
    extension = yield from _read_extension(superblock)
    if has_pages(extension):
        yield Hints([Pages()])
    entries = yield from read_cache_image(extension, superblock.sizes)
    scan = yield from overlay(_scan(superblock, extension, limits, scope), entries)
    root = scan.objects.get(superblock.root)
    if not isinstance(root, Group):
        if problems:
            raise Truncated(f"{problems[0].message}; the root group cannot be read")
        broken = scan.errors.get(superblock.root)
        what = str(broken[0][1]) if broken else "it is not a group"
        raise MalformedFile(f"the root group cannot be read: {what}")
    paths = _first_paths(superblock.root, scan.objects)
    problems += _problems(scan, paths)
    return H5File(
        url=url,
        root=root,
        objects=scan.objects,
        paths=paths,
        contents=Contents(scan.context, entries),
        problems=tuple(problems),
        nbytes=nbytes,
        unscanned=frozenset(scan.unscanned),
    )


def _check_end(superblock: Superblock) -> list[Problem]:
    end = superblock.sizes.end
    if superblock.stated_end <= end:
        return []
    missing = superblock.stated_end - end
    error = Truncated(
        f"the file is truncated: it should have {superblock.stated_end} bytes, but {missing} are missing", at=end
    )
    return [Problem.from_error(_FILE, error)]


def _read_extension(superblock: Superblock) -> Step[tuple[Message, ...]]:
    """Return the messages of the superblock extension, if any. Spec: II.C."""
    if superblock.extension is None:
        return ()
    return (yield from read_object_header(superblock.extension, superblock.sizes)).messages


def _scan(superblock: Superblock, extension: tuple[Message, ...], limits: Limits, scope: Scope) -> Step[_Scan]:
    """Scan all objects of a scope that can be reached from the root group."""
    sizes = apply_extension(superblock.sizes, extension)
    shared = yield from read_shared_messages(extension, sizes)
    scan = _Scan(Context.of(sizes, shared), limits)
    scan.visit(superblock.root, 0, scope)
    yield from scan.crew.finish()
    if scan.exceeded is not None:
        raise scan.exceeded
    return scan


class _Scan:
    """A scan in progress.

    Reading an object starts when the first link to it is found, and runs alongside all others.
    """

    def __init__(self, context: Context, limits: Limits) -> None:
        self.crew = Crew()
        self.objects: dict[int, Object] = {}
        self.errors: dict[int, list[tuple[str, H5ZarrError]]] = {}
        self.context = context
        self.exceeded: LimitReached | None = None
        self.unscanned: set[int] = set()
        self._limits = limits
        self._depths: dict[int, int] = {}  # of visited objects
        self._scopes: dict[int, Scope] = {}

    def visit(self, address: int, depth: int, scope: Scope) -> None:
        """Start reading the object at `address`, `depth` levels below the root, unless it was visited before.

        After a limit is exceeded, no new reads start. Reads in progress finish.
        """
        if address in self._depths or self.exceeded is not None:
            return
        self._depths[address], self._scopes[address] = depth, scope
        if depth > self._limits.depth:
            self.exceeded = LimitReached(f"groups are nested {depth:,} levels deep", "depth", self._limits.depth)
            return
        if (count := len(self._depths)) > self._limits.object_count:
            what = f"the file has {count:,} objects or more"
            self.exceeded = LimitReached(what, "object_count", self._limits.object_count)
            return
        self.crew.start(attempt(guarded(self._read_object(address))), self._keep(address))

    def _keep(self, address: int) -> Callable[[Object | H5ZarrError], None]:
        def keep(found: Object | H5ZarrError) -> None:
            if isinstance(found, H5ZarrError):
                self.complain(address, "", found)
            else:
                self.objects[address] = found

        return keep

    def complain(self, address: int, part: str, error: H5ZarrError) -> None:
        """Record an error in a part of the object at `address`."""
        self.errors.setdefault(address, []).append((part, error))

    def _read_object(self, address: int) -> Step[Object]:
        beginning = yield from begin_object_header(address, self.context.sizes)
        header, early = yield from read_early(beginning, self.context)
        kinds = header.by_kind.keys()
        if kinds & {Kind.SYMBOL_TABLE, Kind.LINK_INFO}:  # same precedence as in the HDF5 library
            if self._scopes[address].is_entered:
                return (yield from self._read_group(header))
            self.unscanned.add(address)
            return Group(address=address, links={}, attributes={})
        if Kind.LAYOUT in kinds:
            reading = read_dataset(header, self.context, early)
            attributes, make_dataset = yield from both(self._read_attributes(header), reading)
            return make_dataset(attributes=attributes, notes=self._notes(header))
        if Kind.DATATYPE in kinds:
            attributes, datatype = yield from both(self._read_attributes(header), read_datatype(header, self.context))
            notes = self._notes(header)
            return CommittedDatatype(address=address, datatype=datatype, attributes=attributes, notes=notes)
        raise MalformedFile("object is neither a group nor a dataset nor a datatype", at=address)

    def _read_group(self, header: ObjectHeader) -> Step[Group]:
        attributes, links = yield from both(self._read_attributes(header), self._read_links(header))
        info, constants = header.first(Kind.LINK_INFO), header.first(Kind.GROUP_INFO)
        return Group(
            address=header.address,
            links=links,
            attributes=attributes,
            tracks_order=info is not None and decode_link_info(info.content, self.context.sizes).tracks_order,
            constants=decode_group_info(constants.content) if constants else GroupConstants(),
            notes=self._notes(header),
        )

    def _notes(self, header: ObjectHeader) -> Notes:
        """Return the notes in the header. A broken note is reported, but the object remains usable."""
        if _NOTES.isdisjoint(header.by_kind):
            return Notes(reference_count=header.reference_count, modification_time=header.modification_time)
        changed = self._note(header, Kind.MODIFICATION_TIME, decode_modification_time)
        if changed is None:
            changed = self._note(header, Kind.MODIFICATION_TIME_OLD, decode_old_modification_time)
        return Notes(
            reference_count=self._note(header, Kind.REFERENCE_COUNT, decode_reference_count) or header.reference_count,
            modification_time=header.modification_time if changed is None else changed,
            comment=self._note(header, Kind.COMMENT, decode_comment),
        )

    def _note(self, header: ObjectHeader, kind: Kind, decode: Callable[[bytes], T]) -> T | None:
        if (message := header.first(kind)) is None:
            return None
        try:
            return decode(message.content)
        except MalformedFile as error:
            self.complain(header.address, "", error)
            return None

    def _read_links(self, header: ObjectHeader) -> Step[dict[str, Link]]:
        """Return a group's links, and start reading the objects that they point to."""
        links: dict[str, Link] = {}
        depth, scope = self._depths[header.address] + 1, self._scopes[header.address]
        found, errors = yield from read_links(header, self.context)
        for link in sorted(found, key=_order):
            if links.setdefault(link.name, link) is not link:
                what = f"two links in this group are called {link.name!r}; the second one is left out"
                errors.append(MalformedFile(what))
            elif isinstance(link, HardLink):
                self.visit(link.address, depth, scope.below(link.name))
        for error in errors[:_MOST_COMPLAINTS]:
            self.complain(header.address, "", error)
        if len(errors) > _MOST_COMPLAINTS:
            what = f"{len(errors)} links in this group are broken; only the first {_MOST_COMPLAINTS} are listed"
            self.complain(header.address, "", MalformedFile(what))
        return links

    def _read_attributes(self, header: ObjectHeader) -> Step[dict[str, Attribute]]:
        attributes, broken = yield from read_attributes(header, self.context)
        for name, error in broken:
            self.complain(header.address, f"@{name}", error)
        return attributes


def _order(link: Link) -> tuple[int, str]:
    """Sort links by creation order if known, else by name, as the HDF5 library does."""
    return (-1 if link.creation_order is None else link.creation_order, link.name)


def _first_paths(root: int, objects: dict[int, Object]) -> dict[int, str]:
    """Return the first path of each object reachable by hard links, breadth first, including broken objects."""
    paths = {root: "/"}
    waiting = deque([root])
    nbytes = 0
    while waiting:
        address = waiting.popleft()
        group = objects.get(address)
        if not isinstance(group, Group):
            continue
        parent = paths[address].rstrip("/")
        for link in group.links.values():
            if isinstance(link, HardLink) and link.address not in paths:
                path = f"{parent}/{link.name}"
                nbytes += len(path)
                if nbytes > _PATHS_NBYTES:
                    raise MalformedFile(f"the paths of the file's objects take more than {_PATHS_NBYTES} bytes")
                paths[link.address] = path
                waiting.append(link.address)
    return paths


def _problems(scan: _Scan, paths: dict[int, str]) -> list[Problem]:
    """Return all problems, in path order."""
    known = [(path, address) for address, path in paths.items() if address in scan.errors]
    return [Problem.from_error(path + part, error) for path, address in known for part, error in scan.errors[address]]

"""The hallway of a verification: references and source are opened, first compared as a whole, then array by array."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from h5zarr import __version__
from h5zarr.errors import SourceChanged, SourceError, Unsupported
from h5zarr.hierarchy import ArrayNode, GroupNode, Json
from h5zarr.io.source import open_source
from h5zarr.io.span import Span
from h5zarr.io.url import display_url, find_local_path
from h5zarr.io.verify import check_unchanged
from h5zarr.limits import USUAL, Limits
from h5zarr.read.opening import Opened, open_hierarchy
from h5zarr.read.sources import options_for
from h5zarr.verifying.arrays import Verified, verify_array, verify_group
from h5zarr.verifying.classic_truth import ClassicTruth
from h5zarr.verifying.differences import Unreadable
from h5zarr.verifying.hdf5_truth import H5Truth

Truth: TypeAlias = H5Truth | ClassicTruth


@dataclass(slots=True)
class Verification:
    """What a verification found. `changed` says that the source is not the file that the references were made of."""

    references: str
    source: str
    library: str = ""
    changed: str = ""
    arrays: list[Verified] = field(default_factory=list)
    groups: list[Verified] = field(default_factory=list)
    not_found: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_right(self) -> bool:
        return not self.changed and not self.not_found and all(one.is_right for one in (*self.arrays, *self.groups))

    def to_json(self) -> dict[str, Json]:
        """Return the report for machines."""
        return {
            "version": __version__,
            "references": self.references,
            "source": self.source,
            "library": self.library,
            "right": self.is_right,
            "changed": self.changed,
            "arrays": [one.to_json() for one in self.arrays],
            "groups": [one.to_json() for one in self.groups if not one.is_right],
            "not_in_source": self.not_found,
            "seconds": round(self.seconds, 3),
        }


def verify(
    references: str | os.PathLike[str],
    source: str | os.PathLike[str] | None = None,
    *,
    sample: float | None = None,
    seed: int = 0,
    group: str = "/",
    storage_options: Mapping[str, Any] | None = None,
    allow: Sequence[str] = (),
    limits: Limits = USUAL,
    on_array: Callable[[Verified, int], None] | None = None,
) -> Verification:
    """Compare what Zarr reads through references with what h5py, or netCDF4, reads from the file itself.

    `source` is the file to compare with, if not the one that the references were made of; `group` is the group of it
    that is their root. With `sample`, about that share of the chunks of each array is compared, the same for the same
    `seed`; always the first and the last, some at the edges, and some of those that are missing or inlined. `on_array`
    is told of each array when it is done, and how many there are. `allow` and `limits` are as for `h5zarr.open_store`.
    Raises H5ZarrError where nothing can be compared.
    """
    if sample is not None and not 0 < sample <= 1:
        raise ValueError(f"sample is {sample}, but must be above 0 and at most 1")
    started = time.perf_counter()
    opened = open_hierarchy(references, storage_options=storage_options, allow=allow, limits=limits)
    try:
        url = os.fspath(source) if source is not None else _recorded(opened)
        result = Verification(opened.url, display_url(url))
        result.changed = _find_change(opened, storage_options or {})
        if not result.changed:
            with _open_truth(url, storage_options or {}) as truth, warnings.catch_warnings():
                # Zarr says of some codecs and types that other implementations may lack them.
                warnings.filterwarnings("ignore", module=r"zarr\.")
                result.library = truth.library
                _verify_nodes(result, opened, truth, group, sample, seed, on_array)
        result.seconds = time.perf_counter() - started
        return result
    finally:
        opened.close()


def _recorded(opened: Opened) -> str:
    if not opened.sources.urls and opened.source == opened.url:
        raise Unsupported(f"{opened.url}: the references do not say which file they are of", remedy="Name it: SOURCE.")
    url = opened.sources.urls[0] if opened.sources.urls else opened.source
    opened.sources.check(url)
    return url


def _find_change(opened: Opened, storage_options: Mapping[str, Any]) -> str:
    """Return what has changed about the files that are referred to since the references were made; "" if nothing."""
    for url, expected in zip(opened.sources.urls, opened.sources.expected, strict=False):
        if expected is None:
            continue
        opened.sources.check(url)
        try:
            with open_source(url, options_for(url, dict(storage_options))) as source:
                check_unchanged(display_url(url), expected, source.identity)
        except SourceChanged as error:
            return str(error)
    return ""


def _verify_nodes(
    result: Verification,
    opened: Opened,
    truth: Truth,
    group: str,
    sample: float | None,
    seed: int,
    on_array: Callable[[Verified, int], None] | None,
) -> None:
    import zarr

    from h5zarr.store import HierarchyStore

    nodes = opened.hierarchy.nodes
    count = sum(isinstance(node, ArrayNode) for node in nodes.values())
    zarr_group = zarr.open_group(HierarchyStore(opened), mode="r", zarr_format=3)
    root = group.strip("/")
    for path, node in nodes.items():
        place = f"/{root}{path}" if root else path
        if isinstance(node, GroupNode):
            result.groups.append(_verify_group(path, node, truth, place))
            continue
        try:
            variable = truth.find(place)
        except Unreadable as error:
            result.arrays.append(Verified(path, skipped=str(error)))
            continue
        if variable is None:
            result.not_found.append(path)
            continue
        done = verify_array(path, node, zarr_group[path.lstrip("/")], variable, sample, seed)
        result.arrays.append(done)
        if on_array is not None:
            on_array(done, count)


def _verify_group(path: str, node: GroupNode, truth: Truth, place: str) -> Verified:
    try:
        expected = list(truth.attributes(place.rstrip("/") or "/"))
    except (KeyError, OSError, RuntimeError):
        return Verified(path, skipped=f"{truth.library} does not open this group")
    return verify_group(path, node.attributes, iter(expected))


@contextmanager
def _open_truth(url: str, storage_options: Mapping[str, Any]) -> Iterator[Truth]:
    """Open the file with another library. Raises an H5ZarrError that says why it cannot."""
    options = options_for(url, dict(storage_options))
    with open_source(url, options) as source:
        (head,) = source.read_many([Span(0, min(4, source.nbytes))])
        nbytes = source.nbytes
    truth = _open_classic(url, options, nbytes) if bytes(head[:3]) == b"CDF" else _open_hdf5(url, options)
    try:
        yield truth
    finally:
        truth.close()


def _open_hdf5(url: str, options: Mapping[str, Any]) -> H5Truth:
    import h5py

    _load_plugins()
    path = find_local_path(url)
    try:
        return H5Truth(h5py.File(path if path is not None else _open_remote(url, options), "r"))
    except OSError as error:
        what = f"{display_url(url)}: h5py does not open it: {str(error).partition(chr(10))[0]}"
        raise SourceError(what, remedy="Check the file with h5dump.") from None


def _open_classic(url: str, options: Mapping[str, Any], nbytes: int) -> ClassicTruth:
    try:
        import netCDF4
    except ImportError:
        what = f"{display_url(url)}: the package netCDF4 is needed to read a netCDF-3 file"
        raise Unsupported(what, remedy="pip install netCDF4") from None
    path = find_local_path(url)
    try:
        if path is not None:
            return ClassicTruth(netCDF4.Dataset(path, "r"))
        with _open_remote(url, options) as file:  # the library opens no URLs, but it takes what is in memory
            return ClassicTruth(netCDF4.Dataset("remote.nc", "r", memory=file.read(nbytes)))
    except OSError as error:
        what = f"{display_url(url)}: netCDF4 does not open it: {error.strerror or type(error).__name__}"
        raise SourceError(what, remedy="Check the file with ncdump -h.") from None


def _open_remote(url: str, options: Mapping[str, Any]) -> Any:
    from h5zarr.io.failure import or_source_error
    from h5zarr.io.filesystems import shared_filesystem
    from h5zarr.io.quoting import settle_url

    def open_it() -> Any:
        filesystem, path = shared_filesystem(settle_url(url), options)
        return filesystem.open(path, "rb")

    return or_source_error(display_url(url), 60, open_it)


def _load_plugins() -> None:
    """Let h5py use the filters that are installed."""
    try:
        import hdf5plugin  # noqa: F401
    except ImportError:
        return

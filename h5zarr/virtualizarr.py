"""A VirtualiZarr parser for HDF5, netCDF-4 and netCDF-3 files.

virtualizarr.open_virtual_dataset(url, registry=registry, parser=h5zarr.virtualizarr.Parser())
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from glob import escape
from typing import Any
from urllib.parse import urlparse

import numpy as np
import numpy.typing as npt
import virtualizarr.manifests.manifest
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import MemoryStore
from virtualizarr.manifests import ChunkManifest, ManifestArray, ManifestGroup, ManifestStore
from zarr.core.metadata import ArrayV3Metadata

from h5zarr.commands.translate.options import make_options, several
from h5zarr.commands.translate.translate import translate_source
from h5zarr.commands.translate.translation import ProblemsFound, Translation
from h5zarr.encode.inlining import Inlining
from h5zarr.errors import H5ZarrError, Problem, SourceError, Unrepresentable
from h5zarr.io.access import USUAL_ACCESS, Access
from h5zarr.io.location import Location
from h5zarr.io.obstore import ObjectSource
from h5zarr.io.protocols import grammar_of
from h5zarr.io.source import Source, open_source
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode
from h5zarr.zarr_model.v3_nodes import encode_metadata_v3

_VERSION = f"VirtualiZarr {virtualizarr.__version__}"
_INLINED: str | None = getattr(virtualizarr.manifests.manifest, "INLINED_CHUNK_PATH", None)
"""The URL that marks bytes held by the manifest itself. None in versions that cannot hold any."""

_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_HELD_URL = "h5zarr-inline://memory"
_MOST_CHUNKS = 50_000_000  # manifests are dense: 32 bytes for each chunk of the grid, written or not


class NotVirtual(Unrepresentable):
    """This version of VirtualiZarr cannot hold an array."""

    remedy = "Use a later version of VirtualiZarr, or h5zarr.translate, which can."


class Parser:
    """A parser for VirtualiZarr, which calls it with the URL of a file and a registry of stores.

    Arrays can be joined with those of other files. Arrays that cannot be translated, or that this version of
    VirtualiZarr cannot hold, are left out with a `ProblemWarning`; with `strict` they are an error.

    Parameters
    ----------
    group
        The group that becomes the root.
    drop_variables
        Names of variables and groups in it to leave out.
    storage_options
        Options for fsspec. If given, even if empty, files are read through fsspec; otherwise through the registry's
        store for them, if it has one.
    include, exclude, strict, inline_bytes, max_inline_bytes, anon, network, limits, allow
        As in `h5zarr.translate`. `anon` also reads through fsspec. By default only coordinates, which VirtualiZarr
        loads anyway, and values that cannot be referenced are inlined.

    Raises
    ------
    ValueError or TypeError
        An option has an invalid value.

    Examples
    --------
    >>> import os
    >>> from obspec_utils.registry import ObjectStoreRegistry
    >>> from obstore.store import LocalStore
    >>> from virtualizarr import open_virtual_dataset
    >>> from h5zarr.virtualizarr import Parser
    >>> registry = ObjectStoreRegistry({"file://": LocalStore()})
    >>> url = "file://" + os.path.realpath("ocean.nc")
    >>> open_virtual_dataset(url, registry=registry, parser=Parser(include=["sst"])).sst.shape
    (18, 40, 120)
    """

    def __init__(
        self,
        group: str | None = None,
        drop_variables: Iterable[str] | None = None,
        storage_options: Mapping[str, Any] | None = None,
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        strict: bool = False,
        inline_bytes: int | None = None,
        max_inline_bytes: int | None = None,
        anon: bool = False,
        network: Mapping[str, float] | None = None,
        limits: Mapping[str, int] | None = None,
        allow: Sequence[str] = (),
    ) -> None:
        self.is_fsspec = anon or storage_options is not None
        self.access = Access.from_options(storage_options, network, limits, allow, anon=anon)
        options = make_options(
            group=group or "/",
            include=include,
            exclude=(*several("exclude", exclude), *(f"/{escape(name)}" for name in drop_variables or ())),
            strict=strict,
            inline_bytes=inline_bytes,
            max_inline_bytes=max_inline_bytes,
            joinable=True,
        )
        if inline_bytes is None:
            options = replace(options, inlining=_usual_inlining(options.inlining.total_nbytes))
        self.options = options

    def __call__(self, url: str, registry: ObjectStoreRegistry) -> ManifestStore:
        """Return a store with the arrays of the file at `url`. Their chunks are read through the registry's stores."""
        translation = self._translate(url, registry)
        held: dict[str, bytes] = {}
        arrays, problems = _manifest_arrays(translation, held)
        hierarchy = translation.hierarchy
        fitted = replace(translation.fitted, hierarchy=replace(hierarchy, problems=hierarchy.problems + problems))
        found = replace(translation, fitted=fitted)
        if found.problems and self.options.strict:
            raise ProblemsFound(found.problems, "strict=True")
        found.warn(stacklevel=3)
        return ManifestStore(_manifest_group(hierarchy.nodes, arrays), registry=_with_held(registry, held))

    def _translate(self, url: str, registry: ObjectStoreRegistry) -> Translation:
        opener = partial(open_through, registry, access=self.access, is_fsspec=self.is_fsspec)
        with opener(url) as source:
            return translate_source(source, Location.parse(url), self.options, self.access, opener)


def open_through(
    registry: ObjectStoreRegistry, url: str, access: Access = USUAL_ACCESS, *, is_fsspec: bool = False
) -> Source:
    """Return the source at `url`, through the registry's store for it, or fsspec if there is none.

    A local file is always memory-mapped. With `is_fsspec`, everything else is read through fsspec.
    """
    if is_fsspec or Location.parse(url).path is not None:
        return open_source(url, access)
    try:
        store, path = registry.resolve(_resolvable(url))
    except ValueError:
        return open_source(url, access)
    except NotVirtual as error:
        raise SourceError(str(error), remedy=error.remedy) from None
    return ObjectSource(store, path, url=url, network=access.network)


def _usual_inlining(total_nbytes: int) -> Inlining:
    """Return the default inlining: coordinates, if a manifest can hold them."""
    inlining = Inlining.up_to(0) if _INLINED is None else Inlining(array_nbytes=0)
    return replace(inlining, total_nbytes=total_nbytes)


# --- from nodes to arrays and groups


def _manifest_arrays(
    translation: Translation, held: dict[str, bytes]
) -> tuple[dict[str, ManifestArray], tuple[Problem, ...]]:
    """Return the arrays by path, and a problem for each array that VirtualiZarr cannot hold. See `_hold` for `held`."""
    arrays: dict[str, ManifestArray] = {}
    problems: list[Problem] = []
    urls = np.array([_resolvable(url) for url in translation.hierarchy.urls], np.dtypes.StringDType())
    for path, node in translation.arrays().items():
        try:
            arrays[path] = _manifest_array(path, node, urls, held)
        except H5ZarrError as error:
            problems.append(Problem.from_error(path, error))
        except (KeyError, TypeError, ValueError, NotImplementedError) as error:
            problems.append(Problem.from_error(path, NotVirtual(f"{_VERSION} does not accept it: {error}")))
    return arrays, tuple(problems)


def _manifest_array(path: str, node: ArrayNode, urls: npt.NDArray[Any], held: dict[str, bytes]) -> ManifestArray:
    metadata = ArrayV3Metadata.from_dict(encode_metadata_v3(node))
    if _INLINED is None and node.manifest.inline and node.dimension_names != (path.rpartition("/")[2],):
        raise NotVirtual(f"some of the values cannot be referenced, and {_VERSION} cannot inline them")
    return ManifestArray(metadata=metadata, chunkmanifest=_chunk_manifest(node, urls, held))


def _chunk_manifest(node: ArrayNode, urls: npt.NDArray[Any], held: dict[str, bytes]) -> ChunkManifest:
    """Return the chunk manifest of an array, for the whole grid. Missing chunks have an empty URL."""
    grid, count = node.grid.grid_shape, node.grid.chunk_count
    if count > _MOST_CHUNKS:
        raise NotVirtual(f"{_VERSION} would need memory for each of {count} chunks, most of which are missing")
    paths = np.full(count, "", np.dtypes.StringDType())
    addresses, sizes = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    manifest = node.manifest
    inside = node.grid.contains(manifest.index)  # a dataset that shrank keeps chunks outside the grid
    place = node.grid.number(manifest.index[inside])
    source = manifest.source if isinstance(manifest.source, int) else manifest.source[inside]
    paths[place], addresses[place], sizes[place] = urls[source], manifest.address[inside], manifest.nbytes[inside]
    inline = {index: content for index, content in manifest.inline.items() if np.less(index, grid).all()}
    for index, content in inline.items():
        number = int(node.grid.number(np.array([index], np.int64))[0])
        paths[number] = _INLINED or _hold(content, held)
        sizes[number] = len(content)
    return ChunkManifest.from_arrays(
        paths=paths.reshape(grid),
        offsets=addresses.reshape(grid),
        lengths=sizes.reshape(grid),
        validate_paths=False,
        **({"inlined": inline} if _INLINED and inline else {}),
    )


def _hold(content: bytes, held: dict[str, bytes]) -> str:
    """Return the URL of a chunk held in memory, for versions whose manifests hold no bytes.

    This concerns only coordinates, which VirtualiZarr loads when it opens a file. No reader knows the protocol, so
    reading the URL fails. With a known protocol, a missing file might read as the fill value.
    """
    name = str(len(held))
    held[name] = content
    return f"{_HELD_URL}/{name}"


def _manifest_group(nodes: Mapping[str, GroupNode | ArrayNode], arrays: Mapping[str, ManifestArray]) -> ManifestGroup:
    """Return the root, with all groups and the remaining `arrays`."""
    members: dict[str, dict[str, Any]] = {path: {} for path, node in nodes.items() if isinstance(node, GroupNode)}
    made = ManifestGroup()
    for path, node in reversed(list(nodes.items())):
        parent, _, name = path.rpartition("/")
        if isinstance(node, GroupNode):
            inside = dict(reversed(members[path].items()))
            made = ManifestGroup(
                arrays={key: one for key, one in inside.items() if isinstance(one, ManifestArray)},
                groups={key: one for key, one in inside.items() if isinstance(one, ManifestGroup)},
                attributes=dict(node.attributes),
            )
            if path != "/":
                members[parent or "/"][name] = made
        elif path in arrays:
            members[parent or "/"][name] = arrays[path]
    return made


# --- URLs


def _resolvable(url: str) -> str:
    """Return a URL in the form that a registry resolves: without escapes, because stores would decode them again.

    Raises NotVirtual if the registry, or a reader of VirtualiZarr's output, would read another file.
    """
    location = Location.parse(url)
    uri = location.unescaped() if location.path is None else f"file://{location.absolute()}"
    is_web = grammar_of(uri).is_quoted
    parts = urlparse(uri)
    if f"{parts.scheme}://{parts.netloc}{parts.path}" != uri:
        what = "? or #" + (" or ; in its name, or with a query" if is_web else " in its name")
        raise NotVirtual(f"{location}: {_VERSION} cannot read a file with {what}")
    if is_web and _ESCAPE.search(uri):
        raise NotVirtual(f"{location}: readers of {_VERSION}'s output decode the percent sign")
    return uri


def _with_held(registry: ObjectStoreRegistry, held: Mapping[str, bytes]) -> ObjectStoreRegistry:
    """Return a registry that also resolves chunks held in memory; the same registry if there are none."""
    if not held:
        return registry
    store = MemoryStore()
    for name, content in held.items():
        store.put(name, content)
    more = ObjectStoreRegistry()
    more.map.update(registry.map)
    more.register(_HELD_URL, store)
    return more

"""For those who use VirtualiZarr: a parser of HDF5, netCDF-4 and netCDF-3 files, over h5zarr.

virtualizarr.open_virtual_dataset(url, registry=registry, parser=h5zarr.virtualizarr.Parser())
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from glob import escape
from math import prod
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np
import numpy.typing as npt
import virtualizarr.manifests.manifest
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import MemoryStore
from virtualizarr.manifests import ChunkManifest, ManifestArray, ManifestGroup, ManifestStore
from zarr.core.metadata import ArrayV3Metadata

from h5zarr.encode.encode import TYPES
from h5zarr.encode.options import Inlining
from h5zarr.errors import H5ZarrError, Problem, SourceError, Unrepresentable
from h5zarr.hierarchy import ArrayNode, GroupNode
from h5zarr.io.grammar import grammar_of, split_query
from h5zarr.io.obstore import ObjectSource
from h5zarr.io.quoting import settle_url
from h5zarr.io.source import Source, open_source
from h5zarr.io.url import display_url, find_local_path
from h5zarr.refs.json_v3 import encode_metadata_v3
from h5zarr.selecting import Selection
from h5zarr.translating import Options, ProblemsFound, Translation, translate_source

_VERSION = f"VirtualiZarr {virtualizarr.__version__}"
_INLINED: str | None = getattr(virtualizarr.manifests.manifest, "INLINED_CHUNK_PATH", None)
"""What stands in a manifest in the place of a URL where it holds the bytes itself. None in versions that cannot."""

_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_HELD_URL = "h5zarr-inline://memory"
_MOST_CHUNKS = 50_000_000  # manifests are dense: they take 32 bytes for each chunk of the grid, written or not


class NotVirtual(Unrepresentable):
    """This version of VirtualiZarr cannot hold an array."""

    remedy = "Use a later version of VirtualiZarr, or h5zarr.translate, which can."


class Parser:
    """A parser for VirtualiZarr, which calls it with the URL of a file and a registry of stores.

    - `group` becomes the root; `drop_variables` are the names of variables and groups in it that are left out.
    - The file, and those that it refers to, are read through the registry's store; through fsspec where there are
      `storage_options`, which may be empty, or where the registry has no store for them.
    - `options` are those of a translation. By default arrays can be joined, and what can be referred to is not inlined,
      but for coordinates, which VirtualiZarr loads anyway.

    What cannot be translated, or not be held by this version of VirtualiZarr, is left out with a `ProblemWarning`; it
    is an error with `options.strict`.
    """

    def __init__(
        self,
        group: str | None = None,
        drop_variables: Iterable[str] | None = None,
        storage_options: Mapping[str, Any] | None = None,
        options: Options | None = None,
    ) -> None:
        self.group = group
        self.drop_variables = tuple(drop_variables or ())
        self.storage_options = storage_options
        self.options = options or Options(joinable=True, inlining=_usual_inlining())

    def __call__(self, url: str, registry: ObjectStoreRegistry) -> ManifestStore:
        """Return a store with the arrays of the file at `url`; their chunks are read through the registry's stores."""
        translation = self._translate(url, registry)
        held: dict[str, bytes] = {}
        arrays, problems = _manifest_arrays(translation, held)
        hierarchy = translation.hierarchy
        told = replace(translation, hierarchy=replace(hierarchy, problems=hierarchy.problems + problems))
        if told.problems and self.options.strict:
            raise ProblemsFound(told.problems, "options.strict is set")
        told.warn(stacklevel=3)
        return ManifestStore(_manifest_group(hierarchy.nodes, arrays), registry=_with_held(registry, held))

    def _translate(self, url: str, registry: ObjectStoreRegistry) -> Translation:
        given = self.options.selection
        selection = Selection(
            group=given.group if self.group is None else self.group,
            include=given.include,
            exclude=(*given.exclude, *(f"/{escape(name)}" for name in self.drop_variables)),
        )
        options = replace(self.options, selection=selection, zarr_format=3)
        opener = partial(open_through, registry, storage_options=self.storage_options)
        with opener(url) as source:
            return translate_source(source, url, options, opener=opener)


def open_through(registry: ObjectStoreRegistry, url: str, storage_options: Mapping[str, Any] | None = None) -> Source:
    """Return the source at `url`, through the registry's store for it; through fsspec where there is none.

    A local file is mapped into memory, as always. With `storage_options` everything is read through fsspec.
    """
    if find_local_path(url) is not None:
        return open_source(url)
    if storage_options is not None:
        return open_source(url, storage_options)
    try:
        store, path = registry.resolve(_resolvable(url))
    except ValueError:
        return open_source(url)
    except NotVirtual as error:
        raise SourceError(str(error), remedy=error.remedy) from None
    return ObjectSource(store, path, url=url)


def _usual_inlining() -> Inlining:
    """Return what is inlined unless the user says otherwise: coordinates, where a manifest can hold them."""
    return Inlining.up_to(0) if _INLINED is None else Inlining(array_nbytes=0)


# --- from nodes to arrays and groups


def _manifest_arrays(
    translation: Translation, held: dict[str, bytes]
) -> tuple[dict[str, ManifestArray], tuple[Problem, ...]]:
    """Return the arrays by path, and a problem for each that VirtualiZarr cannot hold; see `_hold` for `held`."""
    arrays: dict[str, ManifestArray] = {}
    problems: list[Problem] = []
    urls = np.array([_resolvable(url) for url in translation.hierarchy.urls], np.dtypes.StringDType())
    for path, node in translation.arrays().items():
        try:
            arrays[path] = _manifest_array(path, node, urls, held)
        except H5ZarrError as error:
            problems.append(Problem.from_error(path, error))
        except (KeyError, TypeError, ValueError, NotImplementedError) as error:
            problems.append(Problem.from_error(path, NotVirtual(f"{_VERSION} does not take it: {error}")))
    return arrays, tuple(problems)


def _manifest_array(path: str, node: ArrayNode, urls: npt.NDArray[Any], held: dict[str, bytes]) -> ManifestArray:
    metadata = ArrayV3Metadata.from_dict(encode_metadata_v3(node))
    if _INLINED is None and node.manifest.inline and node.dimension_names != (path.rpartition("/")[2],):
        raise NotVirtual(f"some of the values cannot be referred to, and {_VERSION} cannot hold them itself")
    return ManifestArray(metadata=metadata, chunkmanifest=_chunk_manifest(node, urls, held))


def _chunk_manifest(node: ArrayNode, urls: npt.NDArray[Any], held: dict[str, bytes]) -> ChunkManifest:
    """Return where the chunks of an array are, for each place of its grid. The empty URL is that of a missing chunk."""
    grid = tuple(-(-extent // chunk) for extent, chunk in zip(node.shape, node.chunk_shape, strict=True))
    if prod(grid) > _MOST_CHUNKS:
        raise NotVirtual(f"{_VERSION} would need memory for each of {prod(grid)} chunks, and few of them are there")
    paths = np.full(prod(grid), "", np.dtypes.StringDType())
    addresses, sizes = np.zeros(prod(grid), np.uint64), np.zeros(prod(grid), np.uint64)
    manifest = node.manifest
    inside = (manifest.index < np.array(grid, np.int64)).all(axis=1)  # a dataset that shrank keeps chunks outside
    steps = np.array([prod(grid[axis + 1 :]) for axis in range(len(grid))], np.int64)
    place = manifest.index[inside] @ steps
    source = manifest.source if isinstance(manifest.source, int) else manifest.source[inside]
    paths[place], addresses[place], sizes[place] = urls[source], manifest.address[inside], manifest.nbytes[inside]
    inline = {index: content for index, content in manifest.inline.items() if np.less(index, grid).all()}
    for index, content in inline.items():
        number = int(np.dot(index, steps))
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
    """Return the URL of a chunk that is held in memory, for versions whose manifests hold no bytes.

    Only coordinates come here, which VirtualiZarr loads when it opens a file. No reader knows the protocol: should one
    be told of it, it fails, where a URL that leads nowhere might read as fill.
    """
    name = str(len(held))
    held[name] = content
    return f"{_HELD_URL}/{name}"


def _manifest_group(nodes: Mapping[str, GroupNode | ArrayNode], arrays: Mapping[str, ManifestArray]) -> ManifestGroup:
    """Return the root, with all groups and those of the `arrays` that are there."""
    members: dict[str, dict[str, Any]] = {path: {} for path, node in nodes.items() if isinstance(node, GroupNode)}
    made = ManifestGroup()
    for path, node in reversed(list(nodes.items())):
        parent, _, name = path.rpartition("/")
        if isinstance(node, GroupNode):
            inside = dict(reversed(members[path].items()))
            made = ManifestGroup(
                arrays={key: one for key, one in inside.items() if isinstance(one, ManifestArray)},
                groups={key: one for key, one in inside.items() if isinstance(one, ManifestGroup)},
                attributes={key: value for key, value in node.attributes.items() if key != TYPES},
            )
            if path != "/":
                members[parent or "/"][name] = made
        elif path in arrays:
            members[parent or "/"][name] = arrays[path]
    return made


# --- URLs


def _resolvable(url: str) -> str:
    """Return a URL as a registry resolves it: without escapes, for stores take a percent sign for one.

    Raises NotVirtual where the registry, or whoever reads what VirtualiZarr writes, would take it for another file.
    """
    path = find_local_path(url)
    uri = f"file://{os.path.abspath(path)}" if path is not None else settle_url(url)
    is_web = grammar_of(uri).is_quoted
    if is_web:
        address, query = split_query(uri)
        uri = unquote(address, errors="surrogateescape") + query
    parts = urlparse(uri)
    if f"{parts.scheme}://{parts.netloc}{parts.path}" != uri:
        what = "? or #" + (" or ; in its name, or with a query" if is_web else " in its name")
        raise NotVirtual(f"{display_url(url)}: {_VERSION} reads no file with {what}")
    if is_web and _ESCAPE.search(uri):
        raise NotVirtual(f"{display_url(url)}: others read what {_VERSION} writes with the percent sign undone")
    return uri


def _with_held(registry: ObjectStoreRegistry, held: Mapping[str, bytes]) -> ObjectStoreRegistry:
    """Return a registry that also knows the chunks that are held in memory; the same, where there are none."""
    if not held:
        return registry
    store = MemoryStore()
    for name, content in held.items():
        store.put(name, content)
    more = ObjectStoreRegistry()
    more.map.update(registry.map)
    more.register(_HELD_URL, store)
    return more

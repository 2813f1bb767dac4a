"""Drop-in replacements for kerchunk's classes for HDF5 and netCDF-3, with the same parameters.

    from h5zarr.kerchunk import SingleHdf5ToZarr      # instead of kerchunk.hdf

The references are dictionaries in kerchunk's form, for `MultiZarrToZarr`, `merge_vars` and the engine "kerchunk".
Creating them does not need kerchunk itself.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping, MutableMapping
from dataclasses import replace
from typing import Any, TypeAlias

from h5zarr.commands.translate.options import Options
from h5zarr.commands.translate.selecting import Selection
from h5zarr.commands.translate.translate import run_translation, translate_source
from h5zarr.commands.translate.translation import ProblemsFound, Translation
from h5zarr.containers.json.json_writing import write_json
from h5zarr.encode.inlining import Inlining
from h5zarr.io.access import Access
from h5zarr.io.file_object import FileObjectSource
from h5zarr.io.location import Location
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode
from h5zarr.zarr_model.metadata import EncodedNode

References: TypeAlias = MutableMapping[str, Any]

_ERRORS = ("warn", "raise", "pdb", "ignore")
_CONSOLIDATED = ".zmetadata"


class SingleHdf5ToZarr:
    """The references of one HDF5, netCDF-4 or netCDF-3 file, in the form of `kerchunk.hdf.SingleHdf5ToZarr`.

    Parameters
    ----------
    h5f
        A path or URL, an open binary file, or an h5py file or group.
    url
        Where others find the file. Required for an open file; otherwise it replaces the path in the references.
    spec
        1 for `{"version": 1, "refs": ...}`, 0 for the content of `refs`.
    inline_threshold
        Inline arrays of up to this many bytes; 0 inlines only what cannot be referenced.
    storage_options
        Options for fsspec, if the file is opened here.
    error
        How to treat problems. "warn" warns about each, "ignore" does not, "raise" raises `ProblemsFound`, and so does
        "pdb", for use with `pdb.pm()`.
    vlen_encode
        Text is always embedded, so only "embed" is allowed.
    out
        A dictionary to fill, or a `LazyReferenceMapper`, which is then flushed and returned.
    unsupported_inline_threshold
        `inline_threshold` for arrays that could not be joined if they were referenced, because they are shorter than
        their compressed chunk. The default is 1 MiB.
    anon, network
        How to read over a network, as in `h5zarr.translate`. kerchunk does not have these.

    Raises
    ------
    ValueError
        An option has an invalid value, or `url` is missing.

    Examples
    --------
    >>> from h5zarr.kerchunk import SingleHdf5ToZarr
    >>> references = SingleHdf5ToZarr("ocean.nc").translate()
    >>> references["version"], references["refs"]["sst/0.0.0"][1:]
    (1, [...])
    """

    def __init__(
        self,
        h5f: Any,
        url: str | None = None,
        spec: int = 1,
        inline_threshold: int | None = 500,
        storage_options: Mapping[str, Any] | None = None,
        error: str = "warn",
        vlen_encode: str = "embed",
        out: References | None = None,
        unsupported_inline_threshold: int | None = None,
        *,
        anon: bool = False,
        network: Mapping[str, float] | None = None,
    ) -> None:
        if vlen_encode != "embed":
            raise NotImplementedError(f"vlen_encode is {vlen_encode!r}, but text can only be embedded: 'embed'")
        if error not in _ERRORS:
            raise ValueError(f"error is {error!r}, but must be one of {', '.join(_ERRORS)}")
        if url is None and not isinstance(h5f, str | os.PathLike):
            raise ValueError("the file is already open: also give the url where others find it")
        self._file = h5f
        self._url = url
        self._spec = spec
        self._inlining = _inlining(inline_threshold, unsupported_inline_threshold)
        self._access = Access.from_options(storage_options, network, anon=anon)
        self._error = error
        self._out = out

    def translate(self, preserve_linked_dsets: bool = False) -> Any:
        """Return the references. `preserve_linked_dsets` has no effect: datasets exist under each of their names.

        They are a dictionary in the form of `spec`, or `out` if that must be flushed.
        """
        translation = self._translate()
        if translation.problems and self._error in ("raise", "pdb"):
            raise ProblemsFound(translation.problems, f"error={self._error!r}")
        if self._error == "warn":
            translation.warn()
        return _deliver(references_v2(translation), self._out, self._spec)

    def close(self) -> None:
        """Do nothing: files opened here are closed as soon as they are translated."""

    def _options(self, **more: Any) -> Options:
        return Options(zarr_format=2, joinable=True, inlining=self._inlining, **more)

    def _translate(self) -> Translation:
        given, url, access = self._file, self._url, self._access
        if isinstance(given, str | os.PathLike):
            return run_translation(Location.parse(given), None, self._options(target_url=url), access)
        assert url is not None
        if _is_of_h5py(given):
            options = self._options(selection=Selection(group=given.name))
            return run_translation(Location.parse(url), None, options, access)
        with FileObjectSource(given, url=url, network=access.network) as source:
            return translate_source(source, Location.parse(url), self._options(), access)


class NetCDF3ToZarr(SingleHdf5ToZarr):
    """The references of one file, in the form of `kerchunk.netCDF3.NetCDF3ToZarr`. Also reads CDF-5.

    Parameters
    ----------
    filename
        A path or URL.
    storage_options, inline_threshold, out, anon, network
        As in `SingleHdf5ToZarr`.
    max_chunk_size
        Split larger values into chunks of about this many bytes; then they may not be joinable with those of other
        files.
    **kwargs
        Options of scipy's reader, which have no effect.

    Examples
    --------
    >>> from h5zarr.kerchunk import NetCDF3ToZarr
    >>> sorted(NetCDF3ToZarr("classic_by_netcdf.nc").translate()["refs"])[:2]
    ['.zattrs', '.zgroup']
    """

    def __init__(
        self,
        filename: str | os.PathLike[str],
        storage_options: Mapping[str, Any] | None = None,
        inline_threshold: int | None = 100,
        max_chunk_size: int = 0,
        out: References | None = None,
        *,
        anon: bool = False,
        network: Mapping[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        reading: dict[str, Any] = {"anon": anon, "network": network}
        super().__init__(filename, None, 1, inline_threshold, storage_options, out=out, **reading)
        self._max_chunk_size = max_chunk_size

    def _options(self, **more: Any) -> Options:
        if not self._max_chunk_size:
            return super()._options(**more)
        return Options(zarr_format=2, chunk_nbytes=self._max_chunk_size, inlining=self._inlining, **more)


def references_v2(translation: Translation) -> dict[str, Any]:
    """Return the references of a translation to Zarr version 2, by key. A value is text or [URL, address, nbytes].

    They equal the written references, but without consolidated metadata, which would be wrong in joined references, and
    without the records of groups, which kerchunk does not have.
    """
    nodes = {
        path: _without_record(node, translation.hierarchy.nodes[path])
        for path, node in translation.fitted.nodes.items()
    }
    text = io.BytesIO()
    write_json(replace(translation.fitted, nodes=nodes), translation.provenance, text)
    references: dict[str, Any] = json.loads(text.getvalue())["refs"]
    del references[_CONSOLIDATED]
    return references


def _without_record(encoded: EncodedNode, node: GroupNode | ArrayNode) -> EncodedNode:
    if not isinstance(node, GroupNode):
        return encoded
    return replace(encoded, documents={**encoded.documents, ".zattrs": dict(node.attributes)})


def _inlining(threshold: int | None, unsupported_threshold: int | None) -> Inlining:
    inlining = Inlining.up_to(max(0, threshold or 0))
    usual = Inlining().converted_nbytes
    return replace(inlining, converted_nbytes=usual if unsupported_threshold is None else unsupported_threshold)


def _deliver(references: dict[str, Any], out: References | None, spec: int) -> Any:
    """Return references in the requested form, and store them in `out`."""
    filled: References = references
    if out is not None:
        out.update(references)
        filled = out
        if hasattr(out, "flush"):
            out.flush()
            return out
    return filled if spec < 1 else {"version": 1, "refs": filled}


def _is_of_h5py(given: Any) -> bool:
    """Return whether this is an h5py file or group, without importing h5py."""
    return type(given).__module__.partition(".")[0] == "h5py"

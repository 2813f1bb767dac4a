"""For those who use kerchunk: its classes for HDF5 and netCDF-3, with their parameters, over h5zarr.

    from h5zarr.kerchunk import SingleHdf5ToZarr      # instead of kerchunk.hdf

The references are dictionaries as kerchunk gives them, for `MultiZarrToZarr`, `merge_vars` and the engine "kerchunk".
kerchunk itself is not needed to make them.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping, MutableMapping
from dataclasses import replace
from typing import Any, TypeAlias

from h5zarr.encode.options import Inlining
from h5zarr.io.file_object import FileObjectSource
from h5zarr.refs.json_v2 import write_nodes_v2
from h5zarr.selecting import Selection
from h5zarr.translating import Options, ProblemsFound, Translation, translate, translate_source

References: TypeAlias = MutableMapping[str, Any]

_ERRORS = ("warn", "raise", "pdb", "ignore")
_CONSOLIDATED = ".zmetadata"


class SingleHdf5ToZarr:
    """The references of one file, HDF5, netCDF-4 or netCDF-3, as `kerchunk.hdf.SingleHdf5ToZarr` gives them.

    - `h5f`: a path or URL, an open binary file, or an h5py file or group. For the latter two `url` says where others
      find the file; with a path it stands in the references in the place of that path.
    - `spec`: 1 for `{"version": 1, "refs": ...}`, 0 for what is in `refs`.
    - `inline_threshold`: arrays of at most as many bytes are inlined; 0 for only what cannot be referred to.
    - `storage_options`: for fsspec, if the file is opened here.
    - `error`: what to do about what cannot be translated. "warn" warns of each problem, "ignore" does not, "raise"
      raises `ProblemsFound`, and so does "pdb": from there `pdb.pm()` is near.
    - `vlen_encode`: text is embedded, and only "embed" is allowed.
    - `out`: a dictionary to be filled, or a `LazyReferenceMapper`, which is then flushed and returned.
    - `unsupported_inline_threshold`: the same for arrays that could not be joined if they were referred to, since they
      are shorter than the compressed chunk that they are in. The default is 1 MiB.
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
    ) -> None:
        if vlen_encode != "embed":
            raise NotImplementedError(f"vlen_encode is {vlen_encode!r}, but text can only be embedded: 'embed'")
        if error not in _ERRORS:
            raise ValueError(f"error is {error!r}, but must be one of {', '.join(_ERRORS)}")
        if url is None and not isinstance(h5f, str | os.PathLike):
            raise ValueError("the file is open already: give the url by which others find it")
        self._file = h5f
        self._url = url
        self._spec = spec
        self._inlining = _inlining(inline_threshold, unsupported_inline_threshold)
        self._storage_options = storage_options
        self._error = error
        self._out = out

    def translate(self, preserve_linked_dsets: bool = False) -> Any:
        """Return the references. `preserve_linked_dsets` has no effect: datasets are there under each of their names.

        They are a dictionary as `spec` wants it, or `out`, where that has to be flushed.
        """
        translation = self._translate()
        if translation.problems and self._error in ("raise", "pdb"):
            raise ProblemsFound(translation.problems, f"error={self._error!r} was given")
        if self._error == "warn":
            translation.warn()
        return _deliver(references_v2(translation), self._out, self._spec)

    def close(self) -> None:
        """Do nothing: files that are opened here are closed as soon as they are translated."""

    def _options(self, **more: Any) -> Options:
        return Options(zarr_format=2, joinable=True, inlining=self._inlining, **more)

    def _translate(self) -> Translation:
        given, url, storage_options = self._file, self._url, self._storage_options
        if isinstance(given, str | os.PathLike):
            return translate(given, storage_options=storage_options, options=self._options(target_url=url))
        assert url is not None
        if _is_of_h5py(given):
            options = self._options(selection=Selection(group=given.name))
            return translate(url, storage_options=storage_options, options=options)
        with FileObjectSource(given, url=url) as source:
            return translate_source(source, url, self._options(), storage_options)


class NetCDF3ToZarr(SingleHdf5ToZarr):
    """The references of one file, as `kerchunk.netCDF3.NetCDF3ToZarr` gives them; CDF-5 is read as well.

    `max_chunk_size` cuts values that are larger into chunks of about as many bytes; then they may not be joined with
    those of other files. What else scipy's reader would take is without effect.
    """

    def __init__(
        self,
        filename: str | os.PathLike[str],
        storage_options: Mapping[str, Any] | None = None,
        inline_threshold: int | None = 100,
        max_chunk_size: int = 0,
        out: References | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(filename, None, 1, inline_threshold, storage_options, out=out)
        self._max_chunk_size = max_chunk_size

    def _options(self, **more: Any) -> Options:
        if not self._max_chunk_size:
            return super()._options(**more)
        return Options(zarr_format=2, chunk_nbytes=self._max_chunk_size, inlining=self._inlining, **more)


def references_v2(translation: Translation) -> dict[str, Any]:
    """Return the references of a translation to version 2 by key: text, or URL, address and number of bytes.

    They are what would be written, but for the metadata of all nodes in one: whoever joins references would have those
    of one file beside the nodes of others.
    """
    assert translation.nodes_v2 is not None
    text = io.BytesIO()
    write_nodes_v2(translation.nodes_v2, translation.hierarchy.urls, translation.provenance, text)
    references: dict[str, Any] = json.loads(text.getvalue())["refs"]
    del references[_CONSOLIDATED]
    return references


def _inlining(threshold: int | None, unsupported_threshold: int | None) -> Inlining:
    inlining = Inlining.up_to(max(0, threshold or 0))
    usual = Inlining().converted_nbytes
    return replace(inlining, converted_nbytes=usual if unsupported_threshold is None else unsupported_threshold)


def _deliver(references: dict[str, Any], out: References | None, spec: int) -> Any:
    """Return references in the form that was asked for; `out` holds them, too."""
    filled: References = references
    if out is not None:
        out.update(references)
        filled = out
        if hasattr(out, "flush"):
            out.flush()
            return out
    return filled if spec < 1 else {"version": 1, "refs": filled}


def _is_of_h5py(given: Any) -> bool:
    """True for a file or group of h5py, which need not be imported to know it."""
    return type(given).__module__.partition(".")[0] == "h5py"

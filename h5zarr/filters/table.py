"""Every HDF5 filter that h5zarr knows, in one table, and those that installed packages add.

A row names the module with the filter's functions, which is imported when one of them is first needed. `FilterKind`
says which functions a module may have. Numbers are registered at
https://github.com/HDFGroup/hdf5_plugins/blob/master/docs/RegisteredFilterPlugins.md
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

from h5zarr.display import readable
from h5zarr.errors import H5ZarrError, MalformedFile, Unsupported
from h5zarr.filters.pipeline import Applied
from h5zarr.filters.toolkit import (
    OWN_CODEC,
    ClientData,
    Codec,
    FilterSettings,
    Values,
    most,
    own_codec,
    settings_of,
)

ENTRY_POINTS = "h5zarr.filters"

Decode: TypeAlias = Callable[[bytes, Values, int], bytes]
Encode: TypeAlias = Callable[[bytes, Values], bytes]


@dataclass(frozen=True, slots=True)
class FilterKind:
    """One HDF5 filter: how to undo and apply it, and which Zarr codec does the same.

    `module` is the full name of a module with these functions. Only `decode` is required:

    - `decode(content, values, nbytes)` returns the bytes before the filter. `values` is the client data, `nbytes` the
      size of the unfiltered chunk, which limits what may be allocated (see `toolkit.most`).
    - `encode(content, values)` applies the filter.
    - `Settings`: the client data as a dataclass with named fields; `ClientData` if the module has none. It is the
      configuration of the codec `h5zarr.filter`.
    - `to_codec(values, nbytes)` returns another codec that reads the same bytes, as Zarr v3 metadata, or None if
      reading needs no codec. `nbytes` is the size of the content before the filter, None if it varies.
    - `from_codec(configuration)` returns the client data for a configuration of `codec`.
    - `label(values)`: what `h5zarr inspect` shows in parentheses after the name.
    - `netcdf_encoding(values)`: what netCDF4-python reports about the filter.

    `codec` is the Zarr codec that `to_codec` returns. `package` is the optional package that decoding needs.
    `added_nbytes` is the number of bytes that the filter adds to a chunk; None if it varies, as for compressors.
    """

    number: int
    name: str
    module: str
    codec: str = OWN_CODEC
    package: str = ""
    added_nbytes: int | None = None

    def decode(self, content: bytes, values: Values, nbytes: int) -> bytes:
        """Return `content` as it was before the filter.

        Filters of other packages are not trusted to check content: their errors and oversized results become
        MalformedFile.
        """
        decode = _functions(self.module).decode
        if self.number in FILTERS:
            return decode(content, values, nbytes)
        try:
            plain = decode(content, values, nbytes)
        except H5ZarrError:
            raise
        except Exception as error:
            raise MalformedFile(f"filter {self.number} ({self.name}) does not decode: {error}") from error
        if len(plain) > most(nbytes):
            raise MalformedFile(f"filter {self.number} ({self.name}) returns {len(plain)} bytes for {nbytes}")
        return plain

    def encode(self, content: bytes, values: Values) -> bytes:
        """Return `content` after the filter. Raises Unsupported if the filter can only be read."""
        encode = _functions(self.module).encode
        if encode is None:
            raise Unsupported(f"filter {self.number} ({self.name}) can be read, but not written")
        return encode(content, values)

    @property
    def settings(self) -> type[FilterSettings]:
        """The client data by name."""
        return _functions(self.module).settings

    def to_codec(self, values: Values, nbytes: int | None) -> Codec | None:
        """Return the Zarr codec that decodes the filter; None if there is nothing to decode."""
        convert = _functions(self.module).to_codec
        if convert is None:
            return own_codec(self.name, settings_of(self.settings, values))
        return convert(values, nbytes)

    def from_codec(self, configuration: Mapping[str, Any]) -> Values:
        """Return the client data for a configuration of `codec`. Raises Unsupported if only that codec can read it."""
        convert = _functions(self.module).from_codec
        if convert is None:
            raise Unsupported(f"codec {self.codec} cannot be read as filter {self.number} ({self.name})")
        return convert(configuration)

    def label(self, values: Values) -> str:
        """Return the name, with the most important setting in parentheses: `deflate(4)`."""
        setting = _functions(self.module).label(values)
        return f"{self.name}({setting})" if setting else self.name

    def netcdf_encoding(self, values: Values) -> dict[str, Any]:
        """Return what netCDF4-python reports about the filter; nothing for filters that netCDF does not know."""
        return _functions(self.module).netcdf_encoding(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Functions:
    decode: Decode
    encode: Encode | None
    settings: type[FilterSettings]
    to_codec: Callable[[Values, int | None], Codec | None] | None
    from_codec: Callable[[Mapping[str, Any]], Values] | None
    label: Callable[[Values], str]
    netcdf_encoding: Callable[[Values], dict[str, Any]]


@cache
def _functions(module: str) -> _Functions:
    found = import_module(module)
    return _Functions(
        decode=found.decode,
        encode=getattr(found, "encode", None),
        settings=getattr(found, "Settings", ClientData),
        to_codec=getattr(found, "to_codec", None),
        from_codec=getattr(found, "from_codec", None),
        label=getattr(found, "label", lambda values: ""),
        netcdf_encoding=getattr(found, "netcdf_encoding", lambda values: {}),
    )


@dataclass(frozen=True, slots=True)
class RefusedFilter:
    """A filter that users may meet, and why h5zarr does not decode it."""

    number: int
    name: str
    reason: str


_NO_LIBRARY = "for which no Python library is known"

FILTERS = {
    kind.number: kind
    for kind in (
        FilterKind(1, "deflate", "h5zarr.filters.deflate", codec="numcodecs.zlib"),
        FilterKind(2, "shuffle", "h5zarr.filters.shuffle", codec="numcodecs.shuffle", added_nbytes=0),
        FilterKind(3, "fletcher32", "h5zarr.filters.fletcher32", codec="numcodecs.fletcher32", added_nbytes=4),
        FilterKind(4, "szip", "h5zarr.filters.szip", package="imagecodecs"),
        FilterKind(5, "nbit", "h5zarr.filters.nbit"),
        FilterKind(6, "scaleoffset", "h5zarr.filters.scaleoffset"),
        FilterKind(307, "bzip2", "h5zarr.filters.bzip2", codec="numcodecs.bz2"),
        FilterKind(32000, "lzf", "h5zarr.filters.lzf"),
        FilterKind(32001, "blosc", "h5zarr.filters.blosc", codec="blosc"),
        FilterKind(32004, "lz4", "h5zarr.filters.lz4"),
        FilterKind(32008, "bitshuffle", "h5zarr.filters.bitshuffle"),
        FilterKind(32013, "zfp", "h5zarr.filters.zfp", package="zfpy"),
        FilterKind(32015, "zstd", "h5zarr.filters.zstd", codec="zstd"),
        FilterKind(32022, "bitgroom", "h5zarr.filters.rounding", codec="", added_nbytes=0),
        FilterKind(32023, "granular bitround", "h5zarr.filters.rounding", codec="", added_nbytes=0),
        FilterKind(32026, "blosc2", "h5zarr.filters.blosc2", package="blosc2"),
        FilterKind(32032, "bitround", "h5zarr.filters.rounding", codec="", added_nbytes=0),
    )
}
REFUSED = {
    kind.number: kind
    for kind in (
        RefusedFilter(305, "lzo", "is LZO, whose library has a licence that h5zarr cannot adopt"),
        RefusedFilter(32002, "mafisc", f"is MAFISC, {_NO_LIBRARY}"),
        RefusedFilter(32003, "snappy", "is Snappy, which numcodecs does not have"),
        RefusedFilter(32012, "jpeg-ls", "is JPEG-LS, which h5zarr does not decode yet"),
        RefusedFilter(32014, "fpzip", "is fpzip, which h5zarr does not decode yet"),
        RefusedFilter(32017, "sz", f"is SZ, {_NO_LIBRARY}"),
        RefusedFilter(32018, "fcidecomp", "is FCIDECOMP, a form of JPEG-LS, which h5zarr does not decode yet"),
        RefusedFilter(32019, "jpeg", "is JPEG, which different decoders decode to different values"),
        RefusedFilter(32020, "vbz", f"is VBZ, {_NO_LIBRARY}"),
        RefusedFilter(32024, "sz3", "is SZ3, whose Python library aborts the process on some content"),
        RefusedFilter(32028, "sperr", "is SPERR, which h5zarr does not decode yet"),
    )
}


def find_kind(number: int) -> FilterKind | None:
    """Return the filter with this HDF5 number; None if neither h5zarr nor an installed package has it."""
    return FILTERS.get(number) or installed_filters().get(number)


def find_kind_by_name(name: str) -> FilterKind | None:
    """Return the filter that the codec `h5zarr.filter` calls by this name."""
    return _BY_NAME.get(name) or next((kind for kind in installed_filters().values() if kind.name == name), None)


def find_kind_by_codec(codec: str) -> FilterKind | None:
    """Return the filter that reads the bytes of a Zarr codec other than `h5zarr.filter`."""
    return _BY_CODEC.get(codec) or next((kind for kind in installed_filters().values() if kind.codec == codec), None)


_BY_NAME = {kind.name: kind for kind in FILTERS.values()}
_BY_CODEC = {kind.codec: kind for kind in FILTERS.values() if kind.codec not in ("", OWN_CODEC)}


def filter_label(applied: Applied) -> str:
    """Return a short name such as `deflate(4)`, or `filter 32099 (its name)` for an unknown number."""
    kind = find_kind(applied.number)
    if kind is not None:
        return kind.label(applied.values)
    if applied.number in REFUSED:
        return REFUSED[applied.number].name
    return f"filter {applied.number} ({readable(applied.name)})" if applied.name else f"filter {applied.number}"


@cache
def installed_filters() -> Mapping[int, FilterKind]:
    """Return the filters of other packages, by number: their entry points in the group `h5zarr.filters`.

    Called only for a number or name that the table lacks. An entry point that cannot be used is skipped with a warning.
    """
    from importlib.metadata import entry_points

    found: dict[int, FilterKind] = {}
    for one in entry_points(group=ENTRY_POINTS):
        try:
            kind = one.load()
            _check_new(kind, found)
        except Exception as error:  # importing another package may raise anything
            warnings.warn(f"h5zarr skips the filter {one.name!r} ({one.value}): {error}", RuntimeWarning, stacklevel=2)
        else:
            found[kind.number] = kind
    return found


def _check_new(kind: object, found: Mapping[int, FilterKind]) -> None:
    if not isinstance(kind, FilterKind):
        raise TypeError(f"it is not a FilterKind, but {type(kind).__name__}")
    others = {**FILTERS, **found}
    if kind.number in others:
        raise ValueError(f"number {kind.number} is already taken by {others[kind.number].name}")
    if kind.name in {other.name for other in others.values()}:
        raise ValueError(f"the name {kind.name} is already taken")

"""What a file is, by its first bytes, and what to do if h5zarr does not read it. One row per kind of file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass

from h5zarr.errors import MalformedFile

HEAD_NBYTES = 2048
"""How many bytes `recognise` looks at. Fewer are enough for most kinds."""

_HDF5_PLACES = (0, 512, 1024)
_BOM = b"\xef\xbb\xbf"
_FIRST_KEY = re.compile(rb'\{\s*"([^"\\]*)"')
_ZARR_FILES = ("zarr.json", ".zgroup", ".zarray")
_ZARR_KEYS = {
    *(b"zarr_format", b"node_type", b"attributes", b"consolidated_metadata", b"shape", b"data_type", b"chunk_grid"),
    *(b"codecs", b"fill_value", b"chunks", b"compressor", b"metadata", b"zarr_consolidated_format"),
}
_SHOWN_NBYTES = 24


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file: its short name, what it is called in a sentence, and what to do with it."""

    name: str
    title: str
    remedy: str
    matches: Callable[[bytes], bool]


class WrongFormat(MalformedFile):
    """The file has another format than the one that is needed. `format` is its short name; empty if it is unknown."""

    kind = "format"

    def __init__(self, message: str, *, format: str = "", remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.format = format


def _starts(*beginnings: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(beginnings)


def _is_hdf5(head: bytes) -> bool:
    return any(head[place : place + 8] == b"\x89HDF\r\n\x1a\n" for place in _HDF5_PLACES)


def _is_html(head: bytes) -> bool:
    return head.removeprefix(_BOM).lstrip()[:14].lower().startswith((b"<!doctype html", b"<html", b"<head", b"<!--"))


def _is_xml(head: bytes) -> bool:
    return head.removeprefix(_BOM).lstrip().startswith(b"<")


def _is_json(head: bytes) -> bool:
    return head.removeprefix(_BOM).lstrip().startswith(b"{")


def is_zarr_metadata(head: bytes) -> bool:
    """Return whether this is the JSON of a Zarr group or array, and not of references."""
    first = _FIRST_KEY.match(head.removeprefix(_BOM).lstrip())
    is_stated = b'"zarr_format"' in head or b'"zarr_consolidated_format"' in head
    return first is not None and first[1] in _ZARR_KEYS and is_stated


def _is_text(head: bytes) -> bool:
    try:
        text = head.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3 or not head[: error.start]:  # a character may be cut off at the end
            return False
        text = head[: error.start].decode()
    return all(letter.isprintable() or letter in "\t\r\n" for letter in text)


def _is_csv(head: bytes) -> bool:
    lines = head.splitlines()
    counts = [(lines[0].count(mark), lines[1].count(mark)) for mark in (b",", b";", b"\t")] if len(lines) > 1 else []
    return _is_text(head) and any(first == second > 0 for first, second in counts)


# HDF5 files may have anything in front of them, a script or a picture, so HDF5 comes first. General rows come last.
KINDS: tuple[FileKind, ...] = (
    FileKind("hdf5", "an HDF5 file", "Translate it first: h5zarr translate.", _is_hdf5),
    FileKind(
        "netcdf3",
        "a netCDF-3 file",
        "Translate it first: h5zarr translate.",
        _starts(b"CDF\x01", b"CDF\x02", b"CDF\x05"),
    ),
    FileKind("empty", "an empty file", "Check the path or URL; a download may have failed.", lambda head: not head),
    FileKind("gzip", "a gzip file", "Decompress a local copy first: gunzip FILE.", _starts(b"\x1f\x8b")),
    FileKind("bzip2", "a bzip2 file", "Decompress a local copy first: bunzip2 FILE.", _starts(b"BZh")),
    FileKind("xz", "an xz file", "Decompress a local copy first: unxz FILE.", _starts(b"\xfd7zXZ\0")),
    FileKind("zstd", "a Zstandard file", "Decompress a local copy first: unzstd FILE.", _starts(b"\x28\xb5\x2f\xfd")),
    FileKind(
        "zip",
        "a zip archive",
        "Unpack a local copy first: unzip FILE. To read one file inside it: zip://NAME::FILE.",
        _starts(b"PK\x03\x04", b"PK\x05\x06"),
    ),
    FileKind(
        "tar",
        "a tar archive",
        "Unpack a local copy first: tar xf FILE. To read one file inside it: tar://NAME::FILE.",
        lambda head: head[257:262] == b"ustar",
    ),
    FileKind(
        "grib",
        "a GRIB file",
        'Open it with xarray and engine="cfgrib", or convert it: cdo -f nc4 copy FILE OUT.',
        _starts(b"GRIB"),
    ),
    FileKind("bufr", "a BUFR file", "Read it with ecCodes (bufr_dump) or pdbufr.", _starts(b"BUFR")),
    FileKind(
        "hdf4",
        "an HDF4 file",
        "Convert it to HDF5 first: h4toh5 FILE OUT, or gdalmdimtranslate FILE OUT.",
        _starts(b"\x0e\x03\x13\x01"),
    ),
    FileKind(
        "tiff",
        "a TIFF file",
        'Open it with rioxarray (xarray and engine="rasterio"), or virtualise it with virtual-tiff.',
        _starts(b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
    ),
    FileKind(
        "image",
        "a picture (PNG, JPEG or GIF)",
        "Check the path or URL; this may be the preview of a dataset.",
        _starts(b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a"),
    ),
    FileKind("pdf", "a PDF document", "Check the path or URL; this may be the documentation.", _starts(b"%PDF")),
    FileKind(
        "parquet",
        "a Parquet file",
        "References in Parquet are a directory: give its path. Other Parquet files are tables: read them with pandas.",
        _starts(b"PAR1"),
    ),
    FileKind("fits", "a FITS file", "Open it with astropy.", _starts(b"SIMPLE  =")),
    FileKind("npy", "a NumPy file", "Open it with numpy.load.", _starts(b"\x93NUMPY")),
    FileKind(
        "matlab",
        "a MATLAB file before version 7.3",
        "Save it from MATLAB with -v7.3, which is HDF5.",
        _starts(b"MATLAB 5.0 MAT-file"),
    ),
    FileKind(
        "git-lfs",
        "a Git LFS pointer, not the file itself",
        "Fetch the file: git lfs pull.",
        _starts(b"version https://git-lfs.github.com/spec/"),
    ),
    FileKind(
        "html",
        "an HTML page",
        "This is probably a login or error page, or a list of files: open the URL in a browser to see which.",
        _is_html,
    ),
    FileKind(
        "xml",
        "an XML document",
        "This may be an error message of a server: look into the file, and check the URL and the credentials.",
        _is_xml,
    ),
    FileKind(
        "zarr",
        "Zarr metadata",
        "The data is Zarr already: open the directory of this file with xarray.open_zarr or zarr.open.",
        is_zarr_metadata,
    ),
    FileKind(
        "json",
        "a JSON file",
        'If it contains references: open them with xarray and engine="h5zarr", or convert them with h5zarr convert.',
        _is_json,
    ),
    FileKind("csv", "a text file with columns, such as CSV", "Read it with pandas.", _is_csv),
    FileKind("text", "a text file", "Check the path or URL, and look into the file.", _is_text),
)


def recognise(head: bytes) -> FileKind | None:
    """Return the kind of a file with these first bytes; None if it is unknown."""
    return next((kind for kind in KINDS if kind.matches(head[:HEAD_NBYTES])), None)


def wrong_format(head: bytes, wanted: str = "an HDF5 or netCDF file") -> WrongFormat:
    """Return the error for a file with these first bytes that is not what is `wanted`."""
    kind = recognise(head)
    if kind is None:
        what = f"not {wanted}: it starts with {head[:8]!r}, which h5zarr does not recognise"
        return WrongFormat(what, remedy="Check the path or URL, and that the file is complete.")
    start = f", which starts with {head[:_SHOWN_NBYTES]!r}" if kind.name in ("text", "csv", "xml") else ""
    return WrongFormat(f"not {wanted}: this is {kind.title}{start}", format=kind.name, remedy=kind.remedy)


def is_zarr_directory(path: str) -> bool:
    """Return whether a local directory is a Zarr group or array."""
    return any(os.path.isfile(os.path.join(path, name)) for name in _ZARR_FILES)

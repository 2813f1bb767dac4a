"""Files that h5zarr does not read are recognised by their first bytes, by every command, near and far."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import h5zarr
from h5zarr.cli import main
from h5zarr.errors import H5ZarrError, MalformedFile
from h5zarr.signatures import KINDS, recognise
from tests.collections_of_files import SAMPLES
from tests.servers import RangeServer

OCEAN = (SAMPLES / "ocean.nc").read_bytes()


def _zipped() -> bytes:
    with zipfile.ZipFile(held := io.BytesIO(), "w") as archive:
        archive.writestr("ocean.nc", OCEAN)
    return held.getvalue()


def _tarred() -> bytes:
    with tarfile.open(fileobj=(held := io.BytesIO()), mode="w") as archive:
        # Not HDF5 first: the library, and so h5zarr, would take the header of the archive for a user block.
        for name, content in (("README", b"Read me."), ("ocean.nc", OCEAN)):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return held.getvalue()


# By row of the table: files of that kind, and a word of the advice.
FILES: dict[str, tuple[str, bytes, ...]] = {
    "empty": ("a download may have failed", b""),
    "gzip": ("Decompress a local copy first: gunzip FILE", gzip.compress(OCEAN)),
    "bzip2": ("bunzip2", bz2.compress(OCEAN)),
    "xz": ("unxz", lzma.compress(OCEAN)),
    "zstd": ("unzstd", b"\x28\xb5\x2f\xfd" + bytes(40)),
    "zip": ("zip://NAME::FILE", _zipped()),
    "tar": ("tar xf", _tarred()),
    "grib": ("cfgrib", b"GRIB\0\0\0\x02" + bytes(100), b"GRIB\0\0\x10\x01" + bytes(100)),
    "bufr": ("ecCodes", b"BUFR\0\0\x10\x04" + bytes(100)),
    "hdf4": ("h4toh5", b"\x0e\x03\x13\x01\0\0\0\xc8" + bytes(100)),
    "tiff": ("rioxarray", b"II*\0\x08\0\0\0", b"MM\0*\0\0\0\x08", b"II+\0\x08\0\0\0" + bytes(8)),
    "image": ("preview", b"\x89PNG\r\n\x1a\n" + bytes(100), b"\xff\xd8\xff\xe0\0\x10JFIF", b"GIF89a" + bytes(20)),
    "pdf": ("documentation", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"),
    "parquet": ("a directory", b"PAR1" + bytes(100) + b"PAR1"),
    "fits": ("astropy", b"SIMPLE  =                    T / file conforms to FITS"),
    "npy": ("numpy.load", b"\x93NUMPY\x01\0v\0{'descr': '<f8', }"),
    "matlab": ("-v7.3", b"MATLAB 5.0 MAT-file, Platform: GLNXA64" + bytes(100)),
    "git-lfs": ("git lfs pull", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"),
    "html": (
        "login or error page, or a list of files",
        b"<!DOCTYPE html>\n<html>",
        b"\n <HTML><body>",
        b"\xef\xbb\xbf<html>",
    ),
    "xml": ("error message of a server", b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>'),
    "zarr": (
        "open_zarr",
        b'{"zarr_format": 3, "node_type": "group", "attributes": {}}',
        b'{\n  "chunks": [10],\n  "compressor": null,\n  "shape": [10],\n  "zarr_format": 2\n}',
        b'{"metadata": {".zgroup": {"zarr_format": 2}}, "zarr_consolidated_format": 1}',
    ),
    "csv": ("pandas", b"time,temperature\n2024-01-01,3.5\n", b"a;b\n1;2\n"),
    "text": ("look into the file", b"Dear Sir,\nplease find attached nothing.\n", "Größe".encode()[:-4] + b"\n"),
}
ROWS = [(name, advice, content) for name, (advice, *contents) in FILES.items() for content in contents]
NOT_WRONG = {"hdf5", "netcdf3", "json"}  # what h5zarr reads, and what may be references
COMMANDS = ["translate", "convert", "inspect", "check", "verify", "validate"]
INDEXED = ["empty", "gzip", "html"]


@pytest.fixture
def server() -> Iterator[RangeServer]:
    with RangeServer({}) as server:
        yield server


def test_every_row_of_the_table_is_tested() -> None:
    assert {kind.name for kind in KINDS} == set(FILES) | NOT_WRONG


@pytest.mark.parametrize(("name", "advice", "content"), ROWS)
def test_a_file_is_recognised_by_its_first_bytes(name: str, advice: str, content: bytes) -> None:
    found = recognise(content)
    assert found is not None
    assert found.name == name
    assert advice in found.remedy


def test_what_h5zarr_reads_is_recognised_too() -> None:
    found = [recognise(head) for head in (OCEAN, bytes(512) + OCEAN, b"CDF\x01\0\0", b'{"version": 1, "refs": {}}')]
    assert [kind and kind.name for kind in found] == ["hdf5", "hdf5", "netcdf3", "json"]


@pytest.mark.parametrize("content", [b"\x80\x04\x95\x10", bytes(100), b"\xff" * 3000])
def test_an_unknown_file_shows_how_it_starts(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file.nc").write_bytes(content)
    with pytest.raises(MalformedFile, match=r"file\.nc: not an HDF5 or netCDF file: it starts with b'") as caught:
        h5zarr.translate(tmp_path / "file.nc")
    assert repr(content[:8]) in str(caught.value)


@pytest.mark.parametrize("is_far", [False, True], ids=["local", "http"])
@pytest.mark.parametrize(
    ("command", "name"),
    # A run of an index takes a second. Three kinds show that it says what `translate` says.
    [*((command, name) for command in COMMANDS for name in FILES), *(("index", name) for name in INDEXED)],
)
def test_every_command_says_what_a_file_is_and_what_to_do(
    command: str,
    name: str,
    is_far: bool,
    server: RangeServer,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    title = next(kind.title for kind in KINDS if kind.name == name)
    advice = FILES[name][0]
    (tmp_path / "file.nc").write_bytes(FILES[name][1])
    server.files["/file.nc"] = FILES[name][1]
    source = server.url("/file.nc") if is_far else str(tmp_path / "file.nc")
    (tmp_path / "list.txt").write_text(source)
    words = ["--files-from", str(tmp_path / "list.txt")] if command == "index" else [source]
    code = main([command, *words, *_output(command, tmp_path)])
    captured = capfd.readouterr()
    said = captured.out + captured.err
    assert code == (1 if command == "index" else 2), said
    assert title in said
    assert advice in said
    assert "file.nc" in said
    assert not (tmp_path / "out.json").exists()


def _output(command: str, folder: Path) -> list[str]:
    if command == "index":
        return [str(folder / "out"), "--workers", "1"]
    return [str(folder / "out.json")] if command in ("translate", "convert") else []


PYTHON: dict[str, Callable[[str], Any]] = {
    "translate": h5zarr.translate,
    "scan": h5zarr.scan,
    "inspect": h5zarr.inspect,
    "open_store": h5zarr.open_store,
    "convert": lambda source: h5zarr.convert(source, "memory://out.json"),
    "verify": h5zarr.verify,
    "validate": h5zarr.validate,
    "engine": lambda source: xr.open_dataset(source, engine="h5zarr"),
}


@pytest.mark.parametrize("function", PYTHON)
@pytest.mark.parametrize("name", FILES)
def test_every_function_names_the_file_and_says_what_it_is(name: str, function: str, tmp_path: Path) -> None:
    title = next(kind.title for kind in KINDS if kind.name == name)
    (tmp_path / "file.nc").write_bytes(FILES[name][1])
    with pytest.raises(H5ZarrError) as caught:
        PYTHON[function](str(tmp_path / "file.nc"))
    assert str(tmp_path / "file.nc") in str(caught.value)
    assert str(caught.value).count("file.nc") == 1
    assert title in str(caught.value)


@pytest.mark.parametrize("function", PYTHON)
@pytest.mark.parametrize("name", ["zarr.json", ".zgroup", ".zarray"])
def test_a_zarr_directory_is_recognised(name: str, function: str, tmp_path: Path) -> None:
    (tmp_path / "data.zarr").mkdir()
    (tmp_path / "data.zarr" / name).write_text("{}")
    with pytest.raises(IsADirectoryError, match="this is a directory of Zarr data") as caught:
        PYTHON[function](str(tmp_path / "data.zarr"))
    assert isinstance(caught.value, H5ZarrError)
    assert "xarray.open_zarr" in caught.value.remedy


@pytest.mark.parametrize("nbytes", [8, 12, 40])
def test_a_truncated_file_is_said_to_be_truncated(nbytes: int, tmp_path: Path) -> None:
    (tmp_path / "cut.nc").write_bytes(OCEAN[:nbytes])
    with pytest.raises(MalformedFile, match=r"cut\.nc: superblock is truncated") as caught:
        h5zarr.translate(tmp_path / "cut.nc")
    assert "compare its size with the original" in caught.value.remedy


def test_references_given_to_translate_are_called_references(tmp_path: Path, capsys: Any) -> None:
    h5zarr.translate(SAMPLES / "ocean.nc", tmp_path / "refs.json.gz")
    assert main(["translate", str(tmp_path / "refs.json.gz"), str(tmp_path / "out.json")]) == 2
    assert "these are references, not the file that they refer to" in capsys.readouterr().err

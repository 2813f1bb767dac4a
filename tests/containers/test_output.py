from __future__ import annotations

import errno
import gzip
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from h5zarr.containers.output import open_output
from h5zarr.errors import OutputError, PackageMissing
from h5zarr.io.location import Location


class Interrupted(Exception):
    pass


def write(target: Any, *blocks: bytes, **options: Any) -> None:
    with open_output(Location.parse(target), options or None) as out:
        for block in blocks:
            out.write(block)


def write_half(target: Any) -> None:
    with open_output(Location.parse(target)) as out:
        out.write(b"new" * 100_000)
        raise Interrupted


def test_what_was_written_is_there_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path / "refs.json", b"one ", b"two")
    assert (tmp_path / "refs.json").read_bytes() == b"one two"
    assert os.listdir(tmp_path) == ["refs.json"]


def test_a_file_url_is_a_local_file(tmp_path: Path) -> None:
    write(f"file://{tmp_path}/refs.json", b"x")
    assert (tmp_path / "refs.json").read_bytes() == b"x"


def test_nothing_is_seen_before_the_end(tmp_path: Path) -> None:
    target = tmp_path / "refs.json"
    target.write_bytes(b"old")
    with open_output(Location.parse(target)) as out:
        out.write(b"new")
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_an_exception_half_way_leaves_the_old_file_and_no_other(tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"refs.json{suffix}"
    target.write_bytes(b"old")
    with pytest.raises(Interrupted):
        write_half(target)
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [target.name]


def test_exceptions_of_the_caller_are_passed_on(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), open_output(Location.parse(tmp_path / "refs.json")):
        raise FileNotFoundError(errno.ENOENT, "another file")


def test_permissions_are_those_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write(tmp_path / "refs.json", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "refs.json").stat().st_mode) == 0o640


def test_a_symbolic_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "real.json").write_bytes(b"old")
    (tmp_path / "refs.json").symlink_to("elsewhere/real.json")
    write(tmp_path / "refs.json", b"new")
    assert (tmp_path / "refs.json").is_symlink()
    assert (tmp_path / "elsewhere" / "real.json").read_bytes() == b"new"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write(pipe, b"through")
    reader.join()
    assert read == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize(
    ("place", "what"),
    [
        ("nowhere/refs.json", "its directory does not exist"),
        ("", "is a directory"),
        ("file/refs.json", "a part of this path is a file"),
    ],
)
def test_a_place_that_cannot_be_written_is_named_with_a_remedy(tmp_path: Path, place: str, what: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OutputError, match=what) as caught:
        write(tmp_path / place, b"x")
    assert caught.value.path == str(tmp_path / place)
    assert caught.value.remedy


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_reported() -> None:
    with pytest.raises(OutputError, match="no space left"):
        write("/dev/full", b"x" * 100_000)


@pytest.mark.parametrize(
    ("number", "what"),
    [
        (errno.ENOSPC, "no space left"),
        (errno.EACCES, "do not have permission"),
        (errno.EROFS, "this file system is read-only"),
        (errno.EIO, "could not be"),
    ],
)
def test_a_failure_at_the_end_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, what: str
) -> None:
    target = tmp_path / "refs.json"
    target.write_bytes(b"old")

    def fail(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OutputError, match=what):
        write(target, b"new")
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["refs.json"]


def test_gzip_has_neither_time_nor_name(tmp_path: Path) -> None:
    write(tmp_path / "one.json.gz", b"text" * 1000)
    write(tmp_path / "two.json.gz", b"text" * 1000)
    written = (tmp_path / "one.json.gz").read_bytes()
    assert written == (tmp_path / "two.json.gz").read_bytes()
    assert written[3:8] == bytes(5)  # no flags, so no name; and no time
    assert gzip.decompress(written) == b"text" * 1000


def test_zstd_is_the_same_each_time(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    write(tmp_path / "one.json.zst", b"text" * 1000, b"more")
    write(tmp_path / "two.json.zst", b"text" * 1000, b"more")
    written = (tmp_path / "one.json.zst").read_bytes()
    assert written == (tmp_path / "two.json.zst").read_bytes()
    assert zstandard.ZstdDecompressor().decompressobj().decompress(written) == b"text" * 1000 + b"more"


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python has zstd itself")
def test_a_missing_zstd_package_is_reported_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(PackageMissing, match="package") as caught:
        write(tmp_path / "refs.json.zst", b"x")
    assert "pip install zstandard" in caught.value.remedy
    assert os.listdir(tmp_path) == []


def test_a_dash_is_standard_output() -> None:
    script = (
        "from h5zarr.containers.output import open_output\nfrom h5zarr.io.location import Location\n"
        "with open_output(Location.parse('-')) as out: out.write(b'\\xff\\n')"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout == b"\xff\n"


def test_a_local_file_needs_no_fsspec(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom h5zarr.containers.output import open_output\nfrom h5zarr.io.location import Location\n"
        "import h5zarr.containers.json.json_writing\n"
        "with open_output(Location.parse(sys.argv[1])) as out: out.write(b'x')\n"
        "assert not {'fsspec', 'zarr', 'zstandard', 'asyncio', 'gzip'} & set(sys.modules), sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "refs.json")], check=True)


def test_a_remote_file_is_there_after_success_only() -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe("/out/refs.json.gz", b"old")
    with pytest.raises(Interrupted):
        write_half("memory://out/refs.json.gz")
    assert memory.cat("/out/refs.json.gz") == b"old"
    write("memory://out/refs.json.gz", b"new")
    assert gzip.decompress(memory.cat("/out/refs.json.gz")) == b"new"
    memory.rm("/out", recursive=True)


def test_a_remote_failure_is_reported_without_secrets() -> None:
    with pytest.raises(OutputError, match="fsspec does not know this protocol") as caught:
        write("nonsense://user:secret@host/refs.json?token=secret", b"x")
    assert "secret" not in str(caught.value)
    with pytest.raises(OutputError, match=r"host/refs\.json: could not be written"):
        write("http://user:secret@localhost:1/host/refs.json?token=secret", b"x")

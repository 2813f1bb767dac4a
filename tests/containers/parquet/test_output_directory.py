"""A directory of references: the old one or the new one, whatever happens."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import fsspec
import pytest

from h5zarr.containers.container import Output
from h5zarr.containers.parquet import parquet_output
from h5zarr.containers.parquet.parquet_container import ParquetContainer
from h5zarr.containers.parquet.parquet_output import open_directory
from h5zarr.containers.registry import container_for_output
from h5zarr.errors import OutputError
from h5zarr.io.location import Location


class Interrupted(Exception):
    pass


def write(target: Any, what: str, count: int = 3) -> None:
    """Write a directory all of whose files say `what`."""
    with open_directory(Output(location=Location.parse(target))) as out:
        for number in range(count):
            out.write_file(f"v{number}/refs.0.parq", what.encode())
        out.write_file(".zmetadata", json.dumps({"metadata": {}, "record_size": 1, "what": what}).encode())


def write_half(target: Any) -> None:
    with open_directory(Output(location=Location.parse(target))) as out:
        out.write_file("v0/refs.0.parq", b"new")
        raise Interrupted


def what_is_there(target: Path, count: int = 3) -> str:
    """Return what all files of a directory say."""
    told = str(json.loads((target / ".zmetadata").read_bytes())["what"])
    assert {(target / f"v{number}/refs.0.parq").read_text() for number in range(count)} == {told}
    return told


def files_below(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.parquet", True), ("s3://b/a.parq/", True), (Path("a.parq"), True), ("a.json", False), ("-", False)],
)
def test_the_name_tells_a_directory_of_parquet(name: Any, expected: bool) -> None:
    assert isinstance(container_for_output(Location.parse(name)), ParquetContainer) is expected


def test_what_was_written_is_there_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path / "refs.parquet", "one")
    assert what_is_there(tmp_path / "refs.parquet") == "one"
    assert os.listdir(tmp_path) == ["refs.parquet"]


def test_other_references_are_replaced_as_a_whole(tmp_path: Path) -> None:
    write(tmp_path / "refs.parquet", "one", 5)
    write(f"file://{tmp_path}/refs.parquet/", "two")
    assert what_is_there(tmp_path / "refs.parquet") == "two"
    assert len(files_below(tmp_path)) == 4


def test_they_are_replaced_on_systems_that_cannot_swap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_output, "_exchange", lambda one, other: False)
    write(tmp_path / "refs.parquet", "one", 5)
    write(tmp_path / "refs.parquet", "two")
    assert what_is_there(tmp_path / "refs.parquet") == "two"
    assert os.listdir(tmp_path) == ["refs.parquet"]


def test_a_symbolic_link_stays(tmp_path: Path) -> None:
    write(tmp_path / "real.parquet", "one")
    (tmp_path / "refs.parquet").symlink_to("real.parquet")
    write(tmp_path / "refs.parquet", "two")
    assert (tmp_path / "refs.parquet").is_symlink()
    assert what_is_there(tmp_path / "real.parquet") == "two"


def test_an_exception_half_way_leaves_the_old_ones_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path / "refs.parquet", "old")
    with pytest.raises(Interrupted):
        write_half(tmp_path / "refs.parquet")
    assert what_is_there(tmp_path / "refs.parquet") == "old"
    assert os.listdir(tmp_path) == ["refs.parquet"]


@pytest.mark.parametrize("name", ["notes.txt", "v/data.h5", "v/.zarray"])
def test_a_directory_with_anything_else_in_it_is_not_replaced(tmp_path: Path, name: str) -> None:
    write(tmp_path / "refs.parquet", "old")
    (tmp_path / "refs.parquet" / name).parent.mkdir(exist_ok=True)
    (tmp_path / "refs.parquet" / name).write_text("mine")
    with pytest.raises(OutputError, match=f"contains files other than references in Parquet .{Path(name).name}"):
        write(tmp_path / "refs.parquet", "new")
    assert what_is_there(tmp_path / "refs.parquet") == "old"


def test_a_zarr_store_and_a_file_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "store.parquet").mkdir()
    (tmp_path / "store.parquet" / ".zmetadata").write_text('{"metadata": {}, "zarr_consolidated_format": 1}')
    with pytest.raises(OutputError, match="contains files other than"):
        write(tmp_path / "store.parquet", "new")
    (tmp_path / "file.parquet").write_text("mine")
    with pytest.raises(OutputError, match="this is a file"):
        write(tmp_path / "file.parquet", "new")


def test_an_empty_directory_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "refs.parquet").mkdir()
    write(tmp_path / "refs.parquet", "new")
    assert what_is_there(tmp_path / "refs.parquet") == "new"


def test_braces_in_the_name_are_refused(tmp_path: Path) -> None:
    """fsspec's reader would find no file of chunks, and show fill values."""
    (tmp_path / "{x}").mkdir()
    with pytest.raises(OutputError, match="braces"):
        write(tmp_path / "{x}" / "refs.parquet", "new")


def test_a_missing_parent_directory_is_reported(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="its directory does not exist"):
        write(tmp_path / "nowhere" / "refs.parquet", "new")


@pytest.mark.parametrize(
    ("number", "what"),
    [(errno.ENOSPC, "no space left"), (errno.EACCES, "do not have permission"), (errno.EIO, "could not be")],
)
@pytest.mark.parametrize("calls", [0, 3])
def test_a_failure_at_the_end_leaves_the_old_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, what: str, calls: int
) -> None:
    write(tmp_path / "refs.parquet", "old")
    before = os.fsync
    seen: list[int] = []

    def fail(descriptor: int) -> None:
        seen.append(descriptor)
        if len(seen) > calls:
            raise OSError(number, os.strerror(number))
        before(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OutputError, match=what):
        write(tmp_path / "refs.parquet", "new")
    assert what_is_there(tmp_path / "refs.parquet") == "old"
    assert os.listdir(tmp_path) == ["refs.parquet"]


_FULL = """
import resource, signal, sys
from tests.containers.parquet.test_output_directory import write
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
write(sys.argv[1], "new" * 4096)
"""


def test_a_full_disk_leaves_the_old_ones(tmp_path: Path) -> None:
    """A limit on the size of files fails in the middle of a write, as a full disk does."""
    write(tmp_path / "refs.parquet", "old")
    done = subprocess.run(
        [sys.executable, "-c", _FULL, str(tmp_path / "refs.parquet")], capture_output=True, text=True, check=False
    )
    assert "there is no space left" in done.stderr
    assert what_is_there(tmp_path / "refs.parquet") == "old"
    assert os.listdir(tmp_path) == ["refs.parquet"]


_FOR_EVER = """
import sys
from tests.containers.parquet.test_output_directory import write
turn = 0
while True:
    turn += 1
    write(sys.argv[1], f"{turn} " * 1000, 30)
    if turn == 1:
        print("begun", flush=True)
"""


def test_killed_at_any_moment_it_leaves_the_old_ones_or_the_new(tmp_path: Path) -> None:
    target = tmp_path / "refs.parquet"
    moments = random.Random(1)
    write(target, "0", 30)
    begun = time.perf_counter()
    write(target, "0", 30)
    seconds = time.perf_counter() - begun  # which depends on the disk, and on who else writes to it
    found = []
    for _ in range(6):
        writer = subprocess.Popen([sys.executable, "-c", _FOR_EVER, str(target)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        with writer.stdout:
            writer.stdout.readline()
            time.sleep(moments.uniform(0, 8 * seconds))
            writer.send_signal(signal.SIGKILL)
            writer.wait()
        found.append(what_is_there(target, 30))
        # Leftover files are next to the output, and do no harm.
        assert all(name == "refs.parquet" or name.startswith(".h5zarr-") for name in os.listdir(tmp_path))
    assert len(set(found)) > 1


def test_a_reader_sees_the_old_ones_or_the_new_while_they_are_replaced(tmp_path: Path) -> None:
    """The directory is never gone: it is opened again and again, and listed through what was opened."""
    target = tmp_path / "refs.parquet"
    writer = subprocess.Popen([sys.executable, "-c", _FOR_EVER, str(target)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    with writer.stdout:
        writer.stdout.readline()
        seen = set()
        try:
            for _ in range(300):
                seen.add((target / ".zmetadata").read_bytes())
        finally:
            writer.kill()
            writer.wait()
    assert seen


# --- elsewhere than on this machine


@pytest.fixture
def memory() -> Any:
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]
    yield filesystem
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]


def test_files_are_sent_and_the_metadata_come_last(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    pipe = type(memory).pipe_file

    def record(self: Any, path: str, value: bytes, **options: Any) -> None:
        sent.append(path)
        pipe(self, path, value, **options)

    monkeypatch.setattr(type(memory), "pipe_file", record)
    write("memory://bucket/refs.parquet", "one")
    assert sent[-1] == "/bucket/refs.parquet/.zmetadata"
    assert len(memory.find("/bucket")) == len(sent) == 4


def test_files_that_are_not_written_again_are_gone(memory: Any) -> None:
    write("memory://bucket/refs.parquet", "one", 5)
    write("memory://bucket/refs.parquet", "two", 3)
    assert {memory.cat(path) for path in memory.find("/bucket") if path.endswith(".parq")} == {b"two"}
    assert len(memory.find("/bucket")) == 4


def test_what_was_begun_and_not_ended_has_no_metadata_and_is_written_again(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("memory://bucket/refs.parquet", "one")
    monkeypatch.setattr(parquet_output, "_BATCH_NBYTES", 1)
    with pytest.raises(Interrupted):
        write_half("memory://bucket/refs.parquet")
    assert memory.find("/bucket") == ["/bucket/refs.parquet/v0/refs.0.parq"]
    write("memory://bucket/refs.parquet", "two")
    assert len(memory.find("/bucket")) == 4


def test_a_failure_before_anything_is_sent_leaves_the_old_ones(memory: Any) -> None:
    write("memory://bucket/refs.parquet", "one")
    with pytest.raises(Interrupted), open_directory(Output(location=Location.parse("memory://bucket/refs.parquet"))):
        raise Interrupted
    assert len(memory.find("/bucket")) == 4


def test_other_files_there_are_not_replaced(memory: Any) -> None:
    memory.pipe_file("/bucket/refs.parquet/mine.txt", b"mine")
    with pytest.raises(OutputError, match="contains files other than"):
        write("memory://bucket/refs.parquet", "one")
    assert memory.find("/bucket") == ["/bucket/refs.parquet/mine.txt"]


def test_file_system_failures_are_described_without_their_text(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, "secret key 123")

    monkeypatch.setattr(type(memory), "pipe_file", refuse)
    with pytest.raises(OutputError, match="access was refused") as caught:
        write("memory://bucket/refs.parquet", "one")
    assert "123" not in str(caught.value)


def test_a_remote_name_that_looks_like_a_pattern_removes_nothing_else() -> None:
    filesystem = fsspec.filesystem("memory")
    url = f"memory://patterns-{uuid4().hex}"
    for name, content in (("a1.parquet", b"one"), ("a[1].parquet", b"two"), ("a[1].parquet", b"three")):
        with open_directory(Output(location=Location.parse(f"{url}/{name}"))) as sink:
            sink.write_file("x/refs.0.parq", content)
            sink.write_file(".zmetadata", b'{"metadata": {}, "record_size": 1}')
    assert filesystem.cat_file(f"{url}/a1.parquet/x/refs.0.parq") == b"one"
    assert filesystem.cat_file(f"{url}/a[1].parquet/x/refs.0.parq") == b"three"

"""Files with filters that this process does not know, read in processes that do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

ROOT = Path(__file__).resolve().parent.parent.parent
VALUES = np.arange(60, dtype="<i4").reshape(6, 10) * 1001 - 17
CHUNK = (3, 10)

# Read the references in three ways; the last one imports h5zarr only through the entry points of Zarr.
TRANSLATE = "import sys; from h5zarr.cli import main; sys.exit(main(['translate', *sys.argv[1:]]))"
THROUGH_XARRAY = "import sys, xarray; print(xarray.open_dataset(sys.argv[1], engine='h5zarr')['v'].values.tolist())"
THROUGH_STORE = """
import sys, h5zarr, zarr
print(zarr.open_group(h5zarr.open_store(sys.argv[1]), mode="r")["v"][...].tolist())
"""
THROUGH_REFERENCES = """
import sys, fsspec, zarr
from zarr.storage import FsspecStore
options = {"remote_protocol": "file", "remote_options": {"asynchronous": True}, "asynchronous": True}
filesystem = fsspec.filesystem("reference", fo=sys.argv[1], skip_instance_cache=True, **options)
assert not [name for name in sys.modules if name.startswith("h5zarr")]
print(zarr.open_group(FsspecStore(filesystem, read_only=True, path=""), mode="r")["v"][...].tolist())
"""
VALIDATE = "import sys; from h5zarr.cli import main; sys.exit(main(['validate', sys.argv[1]]))"
READERS = {"engine": THROUGH_XARRAY, "store": THROUGH_STORE}
ALONE = {"reference file system": THROUGH_REFERENCES}  # needs a process that has not imported h5zarr

# Runs scripts in one process, and prints how each ended and what it printed.
IN_TURN = """
import contextlib, io, json, sys, traceback
ends = []
for script, *arguments in json.loads(sys.argv[1]):
    out, errors, code = io.StringIO(), io.StringIO(), 0
    sys.argv = ["-c", *arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            exec(compile(script, "script", "exec"), {"__name__": "__main__"})
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            code = 1
            traceback.print_exc()
    ends.append((code, out.getvalue(), errors.getvalue()))
print(json.dumps(ends))
"""


def write_filtered(path: Path, number: int, values: tuple[int, ...], contents: dict[tuple[int, ...], bytes]) -> Path:
    """Write `VALUES` as the dataset `v`, whose chunks, by origin, went through a filter that libhdf5 does not have."""
    settings = h5p.create(h5p.DATASET_CREATE)
    settings.set_chunk(CHUNK)
    settings.set_filter(number, h5py.h5z.FLAG_OPTIONAL, values)
    with h5py.File(path, "w") as file:
        space = h5s.create_simple(VALUES.shape)
        dataset = h5d.create(file.id, b"v", h5t.py_create(VALUES.dtype), space, settings)
        for origin, content in contents.items():
            dataset.write_direct_chunk(origin, content)
    return path


def chunks() -> dict[tuple[int, ...], bytes]:
    """Return the unfiltered chunks of `VALUES` by origin."""
    return {(start, 0): VALUES[start : start + CHUNK[0]].tobytes() for start in range(0, VALUES.shape[0], CHUNK[0])}


def run(script: str, *arguments: object, path: Path, fails: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a script with `path` first on the module search path, warnings being errors."""
    search = os.pathsep.join(filter(None, (str(path), os.environ.get("PYTHONPATH", ""), str(ROOT))))
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=path, env={**os.environ, "PYTHONPATH": search}, timeout=120
    )
    assert fails or done.returncode == 0, done.stderr
    return done


def run_in_turn(*scripts: tuple[object, ...], path: Path) -> list[subprocess.CompletedProcess[str]]:
    """Run scripts, each with its arguments, in one process as `run` does. Return how each ended."""
    tasks = [[str(part) for part in script] for script in scripts]
    told = json.loads(run(IN_TURN, json.dumps(tasks), path=path).stdout)
    return [subprocess.CompletedProcess(task, *end) for task, end in zip(tasks, told, strict=True)]


def translate_and_read(
    source: Path, references: Path, *options: object, path: Path, fails: bool = False
) -> dict[str, subprocess.CompletedProcess[str]]:
    """Translate a file and read the references in every way; then validate them. Return how the readers ended."""
    translated, *ends = run_in_turn(
        (TRANSLATE, source, references, "--inline-bytes", 0, *options),
        *((reader, references) for reader in READERS.values()),
        (VALIDATE, references),
        path=path,
    )
    assert translated.returncode == 0, translated.stderr
    assert ends.pop().returncode == 0
    found = dict(zip(READERS, ends, strict=True))
    for name, reader in ALONE.items():
        found[name] = run(reader, references, path=path, fails=fails)
    for name, end in found.items():
        assert fails or end.returncode == 0, (name, end.stderr)
    return found


def assert_read(ends: dict[str, subprocess.CompletedProcess[str]]) -> None:
    """Check that every reader printed the values that were written."""
    assert {name: end.stdout.strip() for name, end in ends.items()} == dict.fromkeys(ends, str(VALUES.tolist()))
    assert ends.keys() == READERS.keys() | ALONE.keys()


def code_blocks(document: Path, heading: str, language: str) -> dict[str, str]:
    """Return the code blocks of a section by the file name in their first line, which is a comment."""
    section = document.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    pattern = rf"^( *)```{language}\n\1# (\S+)\n(.*?)^\1```$"
    found = re.findall(pattern, section, re.MULTILINE | re.DOTALL)
    return {name: re.sub(rf"^{indent}", "", code, flags=re.MULTILINE) for indent, name, code in found}

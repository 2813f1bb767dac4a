"""Files with filters that this process does not know, read in processes that do."""

from __future__ import annotations

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

# Reads the references in three ways; the last process imports h5zarr only through the entry points of Zarr.
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
READERS = {"engine": THROUGH_XARRAY, "store": THROUGH_STORE, "reference file system": THROUGH_REFERENCES}


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


def code_blocks(document: Path, heading: str, language: str) -> dict[str, str]:
    """Return the code blocks of a section by the file name in their first line, which is a comment."""
    section = document.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    pattern = rf"^( *)```{language}\n\1# (\S+)\n(.*?)^\1```$"
    found = re.findall(pattern, section, re.MULTILINE | re.DOTALL)
    return {name: re.sub(rf"^{indent}", "", code, flags=re.MULTILINE) for indent, name, code in found}

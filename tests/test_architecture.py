"""The folder tree is the architecture: rooms import only rooms to their left, and heavy packages stay out of it."""

from __future__ import annotations

import ast
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "h5zarr"

# From left to right; each room may import itself and what stands before it.
ROOMS = (
    "errors",
    "limits",
    "patterns",
    "processes",
    "io",
    "filters",
    "hdf5",
    "tree",
    "netcdf3",
    "netcdf4",
    "hierarchy",
    "encode",
    "refs",
    "icechunk",
    "codecs",
    "inspect",
    "scanning",
    "related",
    "selecting",
    "containers",
    "translating",
    "many",
    "virtualizarr",
    "kerchunk",
    "read",
    "converting",
    "store",
    "engine",
    "indexing",
    "verifying",
    "validating",
    "checking",
    "cli",
    "__main__",
)
OUTSIDE_NUMPY = {
    "fsspec": {
        *("io/remote.py", "io/remote_ranges.py", "io/fetch.py", "io/failure.py", "io/whole.py", "io/filesystems.py"),
        *("read/sources.py", "refs/output.py"),
    },
    "numcodecs": {"hdf5/checksum.py", "filters/*", "codecs/*"},
    "h5py": {"verifying/*"},
    "zarr": {"codecs/*", "store.py", "engine/values.py", "virtualizarr.py", "icechunk/*", "verifying/*"},
    "xarray": {"engine/*"},
    "virtualizarr": {"virtualizarr.py"},
    "obspec_utils": {"virtualizarr.py"},
    "obstore": {"virtualizarr.py"},
    "kerchunk": set(),
    "icechunk": {"icechunk/*"},
    "pyarrow": {"refs/parquet_files.py", "indexing/table.py"},
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Return the full names of all modules that a module imports, wherever the import stands."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_rooms_import_only_rooms_to_their_left(path: Path) -> None:
    room = room_of(path)
    if room == "__init__":
        return
    left = set(ROOMS[: ROOMS.index(room) + 1])
    inside = {name.split(".")[1] for name in imports(path) if name.startswith("h5zarr.")}
    assert inside <= left


def test_formats_do_not_know_each_other() -> None:
    inside = {room: set() for room in ("netcdf3", "hdf5", "netcdf4")}
    for path in modules():
        if (room := room_of(path)) in inside:
            inside[room] |= {name.split(".")[1] for name in imports(path) if name.startswith("h5zarr.")}
    assert inside["netcdf3"] <= {"netcdf3", "errors", "limits", "io", "tree"}
    assert "netcdf3" not in inside["hdf5"] | inside["netcdf4"]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_packages_are_imported_only_where_they_are_needed(path: Path) -> None:
    place = str(path.relative_to(PACKAGE))
    tops = {name.partition(".")[0] for name in imports(path)}
    for package, allowed in OUTSIDE_NUMPY.items():
        assert package not in tops or any(fnmatch(place, pattern) for pattern in allowed)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 360


@pytest.mark.parametrize(
    ("work", "sample"),
    [
        ("import h5zarr; h5zarr.scan(sys.argv[1])", "links_compact.h5"),
        ("from h5zarr.cli import main; main(['translate', *sys.argv[1:]])", "ocean.nc"),
    ],
    ids=["scan", "translate"],
)
def test_a_local_file_needs_neither_fsspec_nor_zarr(work: str, sample: str, tmp_path: Path) -> None:
    script = f"import sys; {work}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    paths = [str(PACKAGE.parent / "sample_data" / sample), str(tmp_path / "references.json")]
    done = subprocess.run([sys.executable, "-c", script, *paths], capture_output=True, text=True, check=True)
    assert not {"fsspec", "zarr", "numcodecs", "h5py", "xarray", "asyncio"} & set(done.stdout.split())

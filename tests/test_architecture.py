"""The folder tree is the architecture: a matrix says which room may import which, and heavy packages stay out."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

import h5zarr

PACKAGE = Path(__file__).resolve().parent.parent / "h5zarr"

# Who may import whom. Every room may import itself; nothing else is permitted, and nothing here is unused.
MATRIX = """
display:
errors:
logs:
netcdf_names:
patterns:
filters: display errors
limits: errors
packages: errors
signatures: errors
processes: errors
io: display errors limits packages signatures
hdf5: display errors filters limits io signatures
tree: errors io
netcdf3: display errors limits io tree
netcdf4: errors netcdf_names io hdf5 tree
zarr_model: display errors filters io tree
codecs: errors filters hdf5 netcdf4 zarr_model
encode: errors filters io tree zarr_model
formats: errors limits io hdf5 netcdf3
read: errors filters limits io netcdf4 zarr_model
containers: display errors limits packages io zarr_model encode read signatures
commands/translate: display errors logs patterns io hdf5 tree netcdf3 netcdf4 zarr_model encode formats containers
commands/validate: display errors filters io zarr_model read containers
commands/convert: display errors patterns io zarr_model read containers commands/translate
commands/catalog: errors packages io containers
commands/index: display errors logs packages processes io zarr_model formats read containers commands/translate
    commands/catalog commands/combine commands/update
kerchunk: io zarr_model encode containers commands/translate
opening: errors io zarr_model read containers commands/translate
virtualizarr: errors io zarr_model encode commands/translate
commands/combine: display errors io tree read zarr_model encode filters containers opening
    commands/translate commands/catalog
commands/check: display errors logs io hdf5 netcdf3 zarr_model encode formats commands/translate commands/combine
commands/update: display errors io encode zarr_model containers opening logs commands/translate commands/combine
    commands/catalog
commands/status: display errors io commands/index commands/catalog
commands/inspect: display errors signatures netcdf_names patterns filters io hdf5 netcdf3 netcdf4 formats zarr_model
    read containers opening
store: display io zarr_model read opening
commands/verify: display errors logs packages netcdf_names processes io zarr_model read containers opening store
engine: errors netcdf_names filters io tree zarr_model encode read containers opening store
cli: display errors limits packages signatures io zarr_model commands/inspect containers commands/translate
    commands/validate commands/convert commands/catalog commands/index commands/check commands/combine commands/update
    commands/status
    commands/verify
__main__: cli
"""
MAY_IMPORT = {
    room: set(others.split()) for room, others in re.findall(r"^(\S+):(.*(?:\n    .*)*)", MATRIX, re.MULTILINE)
}
OUTSIDE_NUMPY = {
    "fsspec": {
        *("io/remote.py", "io/remote_ranges.py", "io/fetch.py", "io/failure.py", "io/filesystems.py"),
        "io/patience.py",
        *("io/access.py", "containers/output.py"),
    },
    "numcodecs": {"hdf5/checksum.py", "filters/*", "codecs/*"},
    "h5py": {"commands/verify/*"},
    "zarr": {
        "codecs/*",
        "store.py",
        "engine/values.py",
        "virtualizarr.py",
        "containers/icechunk/*",
        "commands/verify/*",
    },
    "xarray": {"engine/*"},
    "virtualizarr": {"virtualizarr.py"},
    "obspec_utils": {"virtualizarr.py"},
    "obstore": {"virtualizarr.py"},
    "kerchunk": set(),
    "icechunk": {"containers/icechunk/*"},
    "opentelemetry": {"commands/index/otel.py"},
    "pyarrow": {"containers/columns.py", "commands/catalog/catalog_table.py"},
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return "/".join(parts[:2]) if parts[0] == "commands" else parts[0]


def rooms_in(names: set[str]) -> set[str]:
    """Return the rooms of the modules of the package that have these names."""
    return {
        room_of(PACKAGE / name.removeprefix("h5zarr.").replace(".", "/"))
        for name in names
        if name.startswith("h5zarr.")
    }


def imports(path: Path) -> set[str]:
    """Return the full names of all modules that a module imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
    return found


@cache
def found_imports() -> dict[str, set[str]]:
    """Return for each room the other rooms whose modules it imports, also inside functions."""
    found: dict[str, set[str]] = {room_of(path): set() for path in modules()}
    for path in modules():
        found[room_of(path)] |= rooms_in(imports(path)) - {room_of(path)}
    return found


def test_every_room_is_in_the_matrix() -> None:
    assert set(found_imports()) - {"__init__", "commands/__init__"} == set(MAY_IMPORT)


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_rooms_import_only_what_the_matrix_permits(room: str) -> None:
    assert found_imports()[room] <= MAY_IMPORT[room]


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_the_matrix_has_no_unused_permissions(room: str) -> None:
    assert MAY_IMPORT[room] <= found_imports()[room]


def test_rooms_import_in_one_direction() -> None:
    """No two rooms import each other, directly or through others."""
    order: list[str] = []
    left = dict(MAY_IMPORT)
    while left:
        free = [room for room, others in left.items() if others <= set(order)]
        assert free, f"these rooms import each other: {sorted(left)}"
        order += free
        left = {room: others for room, others in left.items() if room not in free}


def test_no_name_of_a_file_occurs_three_times() -> None:
    names = Counter(path.name for path in modules() if path.name != "__init__.py")
    assert not [name for name, count in names.items() if count > 2]


def test_no_name_of_a_class_occurs_three_times() -> None:
    classes: Counter[str] = Counter()
    for path in modules():
        tree = ast.parse(path.read_text())
        names = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        # Filter modules share an interface: decode, encode, Settings.
        classes.update(names - {"Settings"} if room_of(path) == "filters" else names)
    assert not [name for name, count in classes.items() if count > 2]


def test_opening_references_loads_no_parser(tmp_path: Path) -> None:
    out = tmp_path / "references.json"
    h5zarr.translate(PACKAGE.parent / "sample_data" / "ocean.nc", out)
    script = "import sys, h5zarr; h5zarr.open_store(sys.argv[1]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script, str(out)], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[1] for name in done.stdout.split() if name.startswith("h5zarr.")}
    assert not loaded & {"hdf5", "netcdf4", "netcdf3", "encode", "commands"}


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

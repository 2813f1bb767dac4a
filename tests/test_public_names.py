"""The package shows its names before it loads them."""

from __future__ import annotations

import ast
import logging
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import h5zarr
from tests.collections_of_files import SAMPLES

OPTIONAL = ("dask", "distributed", "icechunk", "kerchunk", "netCDF4", "pyarrow", "virtualizarr", "xarray")


def test_dir_lists_the_public_names() -> None:
    assert dir(h5zarr) == sorted(h5zarr.__all__)
    assert {"check", "translate", "Translation", "__version__"} <= set(dir(h5zarr))


def test_every_listed_name_exists() -> None:
    for name in h5zarr.__all__:
        assert getattr(h5zarr, name) is getattr(h5zarr, name)


def test_type_checkers_find_each_name_where_python_does() -> None:
    body = ast.parse(Path(h5zarr.__file__).read_text()).body
    (block,) = [node for node in body if isinstance(node, ast.If)]
    found = {
        alias.asname: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert found == h5zarr._HOMES


def test_help_shows_the_whole_api_even_if_optional_packages_are_missing() -> None:
    script = f"""
import sys
sys.modules.update(dict.fromkeys({OPTIONAL!r}))
import pydoc, h5zarr
print(pydoc.plain(pydoc.render_doc(h5zarr)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    for name in h5zarr._HOMES:
        assert f" {name}(" in done.stdout


def test_the_module_docstring_names_every_function() -> None:
    told = pydoc.getdoc(h5zarr)
    functions = [name for name in h5zarr._HOMES if name[0].islower()]
    assert [name for name in functions if f"\n    {name} " not in told] == []


def test_importing_the_package_loads_next_to_nothing() -> None:
    script = "import sys; before = set(sys.modules); import h5zarr; dir(h5zarr); print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"numpy", "zarr", "h5py", "fsspec", "logging", "asyncio"}
    assert {name for name in done.stdout.split() if name.startswith("h5zarr")} == {"h5zarr"}


# --- logging


def test_long_operations_log_their_progress(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="h5zarr")
    ocean, references, missing = SAMPLES / "ocean.nc", tmp_path / "ocean.json", tmp_path / "missing.nc"
    list(h5zarr.translate_many([ocean, missing], at_once=1))
    h5zarr.translate(ocean, references)
    h5zarr.check([ocean, SAMPLES / "netcdf4_types.nc"])
    h5zarr.verify(references)
    told = [(record.levelno, record.getMessage()) for record in caplog.records]
    found = {name: [one for one in told if one[1].startswith(f"{name}: ")] for name in ("translate", "check", "verify")}
    assert [level for level, _ in found["translate"]] == [logging.INFO, logging.WARNING]
    assert found["translate"][0][1].startswith(f"translate: {ocean}: 6 arrays, 60 chunks referenced")
    assert str(missing) in found["translate"][1][1]
    assert len(found["check"]) == 2
    assert found["check"][1][1].startswith("check: 2 of 2 files: ")
    assert [text for _, text in found["verify"]][-1].startswith("verify: 6 of 6 arrays: /")


def test_nothing_is_printed_where_logging_is_not_configured() -> None:
    script = "import h5zarr; print(next(h5zarr.translate_many(['missing.nc'])).error)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "missing.nc" in done.stdout
    assert done.stderr == ""

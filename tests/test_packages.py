"""Missing packages are noticed before the first file is read, and the message names the extra that provides them."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import h5zarr
from h5zarr.cli import main
from h5zarr.containers.registry import CONTAINERS
from h5zarr.errors import H5ZarrError, PackageMissing
from h5zarr.io.protocols import rules_of
from h5zarr.packages import EXTRAS
from tests.collections_of_files import SAMPLES
from tests.commands.index.jobs import unmarked

ROOT = Path(__file__).parent.parent
OCEAN = str(SAMPLES / "ocean.nc")
REPOSITORY = "icechunk+file:///tmp/o"
NEEDS_ZSTD = sys.version_info < (3, 14)

# The package that is missing, the command, and what needs the package.
CASES = {
    "http": ("aiohttp", ["inspect", "http://host/a.nc"], "http://host/a.nc: this protocol"),
    "https": ("aiohttp", ["check", "https://host/a.nc"], "https://host/a.nc: this protocol"),
    "s3": ("s3fs", ["translate", "s3://bucket/a.nc", "out.json"], "s3://bucket/a.nc: this protocol"),
    "gs": ("gcsfs", ["translate", "gs://bucket/a.nc", "out.json"], "gs://bucket/a.nc: this protocol"),
    "abfs": ("adlfs", ["translate", "abfs://box/a.nc", "out.json"], "abfs://box/a.nc: this protocol"),
    "chain": ("s3fs", ["inspect", "simplecache::s3://bucket/a.nc"], "simplecache::s3://bucket/a.nc: this protocol"),
    "out": ("s3fs", ["translate", "missing.nc", "s3://bucket/out.json"], "s3://bucket/out.json: this protocol"),
    "parquet": ("pyarrow", ["translate", "missing.nc", "out.parquet"], "out.parquet: a directory of Parquet files"),
    "parq": ("pyarrow", ["translate", "missing.nc", "out.parq"], "out.parq: a directory of Parquet files"),
    "icechunk": (
        "icechunk",
        ["translate", "missing.nc", "icechunk+file:///tmp/o"],
        "icechunk+file:///tmp/o: an Icechunk repository",
    ),
    "convert": (
        "icechunk",
        ["convert", "missing.json", "icechunk+file:///tmp/o"],
        "icechunk+file:///tmp/o: an Icechunk repository",
    ),
    "index": ("pyarrow", ["index", "missing", "out"], "out: the catalog"),
    "format": (
        "icechunk",
        ["index", "missing", "out", "--format", "icechunk"],
        "--format icechunk: an Icechunk repository",
    ),
    "dask": ("distributed", ["index", "missing", "out", "--dask", "tcp://host:1"], "--dask"),
    "sources": ("s3fs", ["index", "s3://bucket/*.nc", "out"], "s3://: this protocol"),
    "status": ("pyarrow", ["status", "out"], "out: the catalog"),
}
if NEEDS_ZSTD:
    CASES["zst"] = ("zstandard", ["translate", "missing.nc", "out.json.zst"], "out.json.zst: .zst compression")


@pytest.mark.parametrize("name", CASES)
def test_a_missing_package_is_one_line_and_exit_code_two(
    name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    package, words, what = CASES[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    assert main(words) == 2
    said = capfd.readouterr()
    extra = "index" if "the catalog" in what else EXTRAS[package]
    assert unmarked(said.out + said.err) == (
        f"h5zarr: {what} needs the package {package}, which is not installed\n"
        f"  Install it: pip install {package} (extra: {extra}).\n"
    )


def test_a_missing_package_for_opentelemetry_is_noticed_before_the_run(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.metrics", None)
    assert main(["index", OCEAN, str(tmp_path / "refs"), "--otel", "http://127.0.0.1:1"]) == 2
    assert unmarked(capfd.readouterr().err) == (
        "h5zarr: --otel needs the package opentelemetry-exporter-otlp-proto-http, which is not installed\n"
        "  Install it: pip install opentelemetry-exporter-otlp-proto-http (extra: otel).\n"
    )
    assert not (tmp_path / "refs").exists()


def test_a_list_of_files_is_searched_for_protocols_whose_package_is_missing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    Path("files.txt").write_text(f"{OCEAN}\nhttps://host/a.nc\n")
    assert main(["index", "--files-from", "files.txt", "out", "--quiet"]) == 2
    assert unmarked(capfd.readouterr().err) == (
        "h5zarr: https://: this protocol needs the package aiohttp, which is not installed\n"
        "  Install it: pip install aiohttp (extra: http).\n"
    )
    assert not Path("out").exists()
    with pytest.raises(PackageMissing, match="aiohttp"):
        h5zarr.index(iter([OCEAN, "https://host/a.nc"]), "out")


def test_a_command_does_not_even_import_a_missing_package(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None; from h5zarr.cli import main;"
        f"sys.exit(main(['index', {OCEAN!r}, {str(tmp_path / 'out')!r}]))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert unmarked(ended.stderr).startswith(f"h5zarr: {tmp_path / 'out'}: the catalog needs the package pyarrow")
    assert not (tmp_path / "out").exists()


def test_the_error_is_an_import_error_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(ImportError, match=r"^s3://bucket/a\.nc: this protocol needs the package s3fs") as caught:
        h5zarr.inspect("s3://bucket/a.nc")
    assert isinstance(caught.value, H5ZarrError)
    assert isinstance(caught.value, PackageMissing)
    assert caught.value.name == "s3fs"


def test_an_index_in_python_needs_pyarrow_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "h5zarr.commands.catalog.catalog_table", raising=False)
    out = tmp_path / "out"
    for act in (lambda: h5zarr.index(OCEAN, out), lambda: h5zarr.status(out)):
        with pytest.raises(PackageMissing, match=f"^{out}: the catalog needs the package pyarrow") as caught:
            act()
        assert caught.value.remedy == "Install it: pip install pyarrow (extra: index)."
    assert not out.exists()


def test_the_extras_provide_what_the_table_says() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for package, extra in EXTRAS.items():
        assert any(needed.startswith(package) for needed in told[extra]), package
    assert any(needed.startswith("pyarrow") for needed in told["index"])
    packages = {rules_of(protocol).package for protocol in ("http", "https", "s3", "s3a", "gs", "abfs", "az")}
    packages |= {package for container in CONTAINERS for package in container.traits.packages.values()}
    assert packages <= set(EXTRAS)
    assert packages >= {"aiohttp", "s3fs", "gcsfs", "adlfs", "icechunk", "pyarrow", "zstandard"}


@pytest.mark.parametrize("call", [lambda: h5zarr.index(OCEAN, "refs"), lambda: h5zarr.status("refs")])
def test_an_index_in_python_names_the_package_that_is_missing(
    call: Callable[[], object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(PackageMissing, match=r"^refs: the catalog needs the package pyarrow"):
        call()
    assert not list(tmp_path.iterdir())

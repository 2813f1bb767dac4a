"""Optional packages: what needs them, and which extra of h5zarr provides them. Asked before the first file is read."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from h5zarr.errors import PackageMissing

EXTRAS = {
    "adlfs": "azure",
    "aiohttp": "http",
    "blosc2": "filters",
    "distributed": "dask",
    "gcsfs": "gcs",
    "icechunk": "icechunk",
    "imagecodecs": "filters",
    "pyarrow": "parquet",
    "s3fs": "s3",
    "xarray": "xarray",
    "zfpy": "filters",
    "zstandard": "zstd",
}
"""The extra of h5zarr that provides each package. Their names on PyPI are those of their modules."""

_HAS_ZSTD = sys.version_info >= (3, 14)  # which includes it


def require(package: str, what: str, extra: str | None = None, *, place: str = "") -> None:
    """Raise PackageMissing if `what`, such as a protocol or an option, needs a package that is not installed."""
    if (package == "zstandard" and _HAS_ZSTD) or find_spec(package) is not None:
        return
    raise missing(package, what, extra, place=place)


def missing(package: str, what: str, extra: str | None = None, *, place: str = "") -> PackageMissing:
    """Return the error for a package that is not installed. `extra` is needed only if several extras provide it.

    `place` is the path or URL that is concerned, without secrets.
    """
    extra = extra or EXTRAS.get(package)
    provided = f" (extra: {extra})" if extra else ""
    error = PackageMissing(
        f"{place and f'{place}: '}{what} needs the package {package}, which is not installed",
        remedy=f"Install it: pip install {package}{provided}.",
    )
    error.name, error.place = package, place
    return error


def require_catalog(shown: str) -> None:
    """Raise PackageMissing if the catalog of an index cannot be read or written."""
    require("pyarrow", "the catalog", extra="index", place=shown)

"""Optional packages: what needs them, and which extra of h5zarr provides them. Asked before the first file is read."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
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

PROTOCOLS = {
    **dict.fromkeys(("http", "https"), "aiohttp"),
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("abfs", "abfss", "az"), "adlfs"),
}
"""The package that fsspec needs for each protocol."""

_PROTOCOL = re.compile(r"(?:^|::)([A-Za-z][A-Za-z0-9+.\-]+)://")
_HAS_ZSTD = sys.version_info >= (3, 14)  # which includes it


def require(package: str, what: str, extra: str | None = None) -> None:
    """Raise PackageMissing if `what`, such as a URL or an option, needs a package that is not installed."""
    if (package == "zstandard" and _HAS_ZSTD) or find_spec(package) is not None:
        return
    raise missing(package, what, extra)


def missing(package: str, what: str, extra: str | None = None) -> PackageMissing:
    """Return the error for a package that is not installed. `extra` is needed only if several extras provide it."""
    extra = extra or EXTRAS.get(package)
    provided = f" (extra: {extra})" if extra else ""
    error = PackageMissing(
        f"{what} needs the package {package}, which is not installed",
        remedy=f"Install it: pip install {package}{provided}.",
    )
    error.name = package
    return error


def require_protocols(url: str, shown: str) -> None:
    """Raise PackageMissing if a URL, or a link of a chain, has a protocol whose package is not installed."""
    for protocol in _PROTOCOL.findall(url):
        if (package := PROTOCOLS.get(protocol.lower())) is not None:
            require(package, f"{shown}: this protocol")


def require_output(location: str, shown: str) -> None:
    """Raise PackageMissing if writing references to a location needs a package that is not installed."""
    name = location.rstrip("/").lower()
    if name.startswith("icechunk+"):
        require("icechunk", f"{shown}: Icechunk")
        return
    if name.endswith(".parquet"):
        require("pyarrow", f"{shown}: Parquet")
    elif name.endswith(".zst"):
        require("zstandard", f"{shown}: .zst")
    require_protocols(location, shown)


def require_catalog(shown: str) -> None:
    """Raise PackageMissing if the catalog of an index cannot be read or written."""
    require("pyarrow", f"{shown}: the catalog", extra="index")


def require_index(sources: Iterable[str], out: str, shown: str, *, is_dask: bool) -> None:
    """Raise PackageMissing if an index of these sources needs a package that is not installed."""
    require_catalog(shown)
    if is_dask:
        require("distributed", "dask=")
    require_sources((*sources, out))


def require_sources(urls: Iterable[str]) -> None:
    """Raise PackageMissing if one of many URLs needs a package that is not installed. It names the protocol."""
    for url in urls:
        require_protocols(url, url.partition("://")[0] + "://")

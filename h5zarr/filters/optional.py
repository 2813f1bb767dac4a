"""Packages that only some filters need."""

from __future__ import annotations

import importlib
from typing import Any

from h5zarr.errors import Unsupported


class PackageMissing(Unsupported):
    """A filter is known, but the package that undoes it is not installed."""

    remedy = "Install it: pip install 'h5zarr[filters]'"


def load(package: str, filter_name: str) -> Any:
    """Return an optional package, imported now: it is slow to import, and most files do not need it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise PackageMissing(f"filter {filter_name} needs the package {package.partition('.')[0]}") from error

"""Read HDF5 and netCDF metadata as Zarr, without copying a byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from h5zarr.encode.options import Inlining
    from h5zarr.errors import H5ZarrError, SourceChanged
    from h5zarr.icechunk.commit import Commit
    from h5zarr.indexing.report import IndexReport
    from h5zarr.indexing.running import IndexJob, IndexWatch, index
    from h5zarr.io.fetch_policy import FetchPolicy
    from h5zarr.io.policy import ReadPolicy
    from h5zarr.limits import Limits
    from h5zarr.many import Outcome, translate_many
    from h5zarr.scanning import scan
    from h5zarr.selecting import Selection
    from h5zarr.store import open_store
    from h5zarr.translating import Options, Translation, translate

__version__ = "0.1.0"
__all__ = [
    "Commit",
    "FetchPolicy",
    "H5ZarrError",
    "IndexJob",
    "IndexReport",
    "IndexWatch",
    "Inlining",
    "Limits",
    "Options",
    "Outcome",
    "ReadPolicy",
    "Selection",
    "SourceChanged",
    "Translation",
    "__version__",
    "index",
    "open_store",
    "scan",
    "translate",
    "translate_many",
]
_HOMES = {
    "Commit": "h5zarr.icechunk.commit",
    "FetchPolicy": "h5zarr.io.fetch_policy",
    "H5ZarrError": "h5zarr.errors",
    "IndexJob": "h5zarr.indexing.running",
    "IndexReport": "h5zarr.indexing.report",
    "IndexWatch": "h5zarr.indexing.running",
    "Inlining": "h5zarr.encode.options",
    "Limits": "h5zarr.limits",
    "Options": "h5zarr.translating",
    "Outcome": "h5zarr.many",
    "ReadPolicy": "h5zarr.io.policy",
    "Selection": "h5zarr.selecting",
    "SourceChanged": "h5zarr.errors",
    "Translation": "h5zarr.translating",
    "index": "h5zarr.indexing.running",
    "open_store": "h5zarr.store",
    "scan": "h5zarr.scanning",
    "translate": "h5zarr.translating",
    "translate_many": "h5zarr.many",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: `h5zarr --help` needs none of it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)

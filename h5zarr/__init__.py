"""Read HDF5 and netCDF metadata as Zarr, without copying a byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from h5zarr.checking.check import CheckReport, check
    from h5zarr.converting import Conversion, convert
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
    from h5zarr.validating.validate import Validation, validate
    from h5zarr.verifying.verify import Verification, verify

__version__ = "0.1.0"
__all__ = [
    "CheckReport",
    "Commit",
    "Conversion",
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
    "Validation",
    "Verification",
    "__version__",
    "check",
    "convert",
    "index",
    "open_store",
    "scan",
    "translate",
    "translate_many",
    "validate",
    "verify",
]
_HOMES = {
    "CheckReport": "h5zarr.checking.check",
    "Commit": "h5zarr.icechunk.commit",
    "Conversion": "h5zarr.converting",
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
    "Validation": "h5zarr.validating.validate",
    "Verification": "h5zarr.verifying.verify",
    "check": "h5zarr.checking.check",
    "index": "h5zarr.indexing.running",
    "convert": "h5zarr.converting",
    "open_store": "h5zarr.store",
    "scan": "h5zarr.scanning",
    "translate": "h5zarr.translating",
    "translate_many": "h5zarr.many",
    "validate": "h5zarr.validating.validate",
    "verify": "h5zarr.verifying.verify",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: `h5zarr --help` needs none of it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)

"""Read HDF5 and netCDF files as Zarr, without copying a byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from h5zarr.commands.check.check import CheckReport, check
    from h5zarr.commands.convert.convert import Conversion, convert
    from h5zarr.commands.index.index import index
    from h5zarr.commands.index.index_report import IndexReport
    from h5zarr.commands.inspect.inspect import Inspection, inspect
    from h5zarr.commands.status.status import Summary, status
    from h5zarr.commands.translate.many import Outcome, translate_many
    from h5zarr.commands.translate.translate import translate
    from h5zarr.commands.translate.translation import Translation
    from h5zarr.commands.validate.validate import Validation, validate
    from h5zarr.commands.verify.verify import Verification, verify
    from h5zarr.errors import H5ZarrError, ProblemWarning, SourceChanged
    from h5zarr.formats import scan
    from h5zarr.store import open_store

__version__ = "0.1.0"
__all__ = [
    "CheckReport",
    "Conversion",
    "H5ZarrError",
    "IndexReport",
    "Inspection",
    "Outcome",
    "ProblemWarning",
    "SourceChanged",
    "Summary",
    "Translation",
    "Validation",
    "Verification",
    "__version__",
    "check",
    "convert",
    "index",
    "inspect",
    "open_store",
    "scan",
    "status",
    "translate",
    "translate_many",
    "validate",
    "verify",
]
_HOMES = {
    "CheckReport": "h5zarr.commands.check.check",
    "Conversion": "h5zarr.commands.convert.convert",
    "H5ZarrError": "h5zarr.errors",
    "IndexReport": "h5zarr.commands.index.index_report",
    "Inspection": "h5zarr.commands.inspect.inspect",
    "Outcome": "h5zarr.commands.translate.many",
    "ProblemWarning": "h5zarr.errors",
    "SourceChanged": "h5zarr.errors",
    "Summary": "h5zarr.commands.status.status",
    "Translation": "h5zarr.commands.translate.translation",
    "Validation": "h5zarr.commands.validate.validate",
    "Verification": "h5zarr.commands.verify.verify",
    "check": "h5zarr.commands.check.check",
    "convert": "h5zarr.commands.convert.convert",
    "index": "h5zarr.commands.index.index",
    "inspect": "h5zarr.commands.inspect.inspect",
    "open_store": "h5zarr.store",
    "scan": "h5zarr.formats",
    "status": "h5zarr.commands.status.status",
    "translate": "h5zarr.commands.translate.translate",
    "translate_many": "h5zarr.commands.translate.many",
    "validate": "h5zarr.commands.validate.validate",
    "verify": "h5zarr.commands.verify.verify",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import h5zarr` and `h5zarr --help` are fast."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)

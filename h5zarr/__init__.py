"""Read HDF5 and netCDF files as Zarr, without copying a byte.

h5zarr reads the metadata of a file and writes Zarr metadata with references to the chunks in the file. With these
references, zarr, xarray and Dask read the file as if it were Zarr.

    import h5zarr, xarray

    h5zarr.translate("ocean.nc", "ocean.json")                   # once
    dataset = xarray.open_dataset("ocean.json", engine="h5zarr")  # often

Look at a file
    inspect         show what a file or references contain
    scan            read all metadata as Python objects
    check           report whether files can be virtualised and combined, and what reading them costs

Make references
    translate       write references for one file
    translate_many  translate many files concurrently
    index           write references and a catalog for a whole archive; later runs read only what has changed
    status          summarise the catalog of an index
    combine         write references for one dataset that consists of many files
    update          bring such a dataset up to date with its archive
    convert         write references from one container into another: JSON, Parquet or Icechunk

Check references
    validate        check references against the rules of Zarr, xarray and the reference format
    verify          compare values read through references with those that h5py or netCDF4 reads

Read
    open_store      open references, or a file, as a read-only Zarr store
    engine="h5zarr" open references, or a file, with xarray

Paths may be local paths or URLs that fsspec opens, such as https:// and s3://. Results have a short `repr`; `print`
shows what the command of the same name prints, and `to_json` returns everything. Errors are `H5ZarrError`s that say
what to do; `logging.getLogger("h5zarr")` reports progress.

`h5zarr.virtualizarr.Parser` is a parser for VirtualiZarr. `h5zarr.kerchunk` replaces kerchunk's classes for HDF5 and
netCDF-3. Import these modules explicitly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from h5zarr.commands.check.check import CheckReport as CheckReport
    from h5zarr.commands.check.check import check as check
    from h5zarr.commands.combine.combine import combine as combine
    from h5zarr.commands.combine.cube import Cube as Cube
    from h5zarr.commands.convert.convert import Conversion as Conversion
    from h5zarr.commands.convert.convert import convert as convert
    from h5zarr.commands.index.index import index as index
    from h5zarr.commands.index.index_report import IndexReport as IndexReport
    from h5zarr.commands.inspect.inspect import Inspection as Inspection
    from h5zarr.commands.inspect.inspect import inspect as inspect
    from h5zarr.commands.status.status import Summary as Summary
    from h5zarr.commands.status.status import status as status
    from h5zarr.commands.translate.many import Outcome as Outcome
    from h5zarr.commands.translate.many import translate_many as translate_many
    from h5zarr.commands.translate.translate import translate as translate
    from h5zarr.commands.translate.translation import Translation as Translation
    from h5zarr.commands.update.update import update as update
    from h5zarr.commands.update.update_result import CubeUpdate as CubeUpdate
    from h5zarr.commands.validate.validate import Validation as Validation
    from h5zarr.commands.validate.validate import validate as validate
    from h5zarr.commands.verify.verify import Verification as Verification
    from h5zarr.commands.verify.verify import verify as verify
    from h5zarr.errors import H5ZarrError as H5ZarrError
    from h5zarr.errors import NotJoinable as NotJoinable
    from h5zarr.errors import ProblemWarning as ProblemWarning
    from h5zarr.errors import SourceChanged as SourceChanged
    from h5zarr.formats import scan as scan
    from h5zarr.store import open_store as open_store

__version__ = "0.1.0"

# Where each public name lives. The imports above say the same to type checkers; a test compares them.
_HOMES = {
    "CheckReport": "h5zarr.commands.check.check",
    "Conversion": "h5zarr.commands.convert.convert",
    "Cube": "h5zarr.commands.combine.cube",
    "CubeUpdate": "h5zarr.commands.update.update_result",
    "H5ZarrError": "h5zarr.errors",
    "IndexReport": "h5zarr.commands.index.index_report",
    "Inspection": "h5zarr.commands.inspect.inspect",
    "NotJoinable": "h5zarr.errors",
    "Outcome": "h5zarr.commands.translate.many",
    "ProblemWarning": "h5zarr.errors",
    "SourceChanged": "h5zarr.errors",
    "Summary": "h5zarr.commands.status.status",
    "Translation": "h5zarr.commands.translate.translation",
    "Validation": "h5zarr.commands.validate.validate",
    "Verification": "h5zarr.commands.verify.verify",
    "check": "h5zarr.commands.check.check",
    "combine": "h5zarr.commands.combine.combine",
    "convert": "h5zarr.commands.convert.convert",
    "index": "h5zarr.commands.index.index",
    "inspect": "h5zarr.commands.inspect.inspect",
    "open_store": "h5zarr.store",
    "scan": "h5zarr.formats",
    "status": "h5zarr.commands.status.status",
    "translate": "h5zarr.commands.translate.translate",
    "translate_many": "h5zarr.commands.translate.many",
    "update": "h5zarr.commands.update.update",
    "validate": "h5zarr.commands.validate.validate",
    "verify": "h5zarr.commands.verify.verify",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import h5zarr` and `h5zarr --help` are fast."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """Return the public names, whether they are imported or not."""
    return sorted(__all__)

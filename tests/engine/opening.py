"""Open references with the engine, as users do, but without a file."""

from __future__ import annotations

from typing import Any

import xarray as xr

from h5zarr import opening
from h5zarr.commands.translate.translation import Translation
from h5zarr.containers.json.json_reading import decode_references
from h5zarr.engine.entrypoint import H5ZarrBackendEntrypoint
from h5zarr.read.sources import Sources
from tests.roundtrip.reading import written


class Opened:
    """A translation, written as references and read back, whose groups can be opened as datasets."""

    def __init__(self, translation: Translation, source: str) -> None:
        references = decode_references(written(translation), "references")
        self._opened = opening.Opened(
            url="references",
            source=source,
            hierarchy=references.hierarchy,
            sources=Sources(urls=references.hierarchy.urls),
        )

    def open(self, group: str, **options: Any) -> xr.Dataset:
        return H5ZarrBackendEntrypoint().open_dataset(self._opened, group=group, **options)

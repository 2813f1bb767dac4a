"""Re-encoding chunks: settings that an encoder refuses are an error that names them, for every library."""

from __future__ import annotations

import pytest

from h5zarr.errors import H5ZarrError, MalformedFile
from h5zarr.filters.pipeline import redo_filters
from h5zarr.filters.table import FILTERS
from h5zarr.hdf5.model import Filter

ODD = [(), (0,), (255,), (2**32 - 1,), (2**31,) * 4, (0,) * 20, (2**32 - 1,) * 20]


def test_a_level_of_deflate_that_there_is_not_is_malformed() -> None:
    with pytest.raises(MalformedFile, match="filter 1 cannot be applied"):
        redo_filters(bytes(100), [Filter(number=1, name="deflate", optional=False, values=(4096,))])


@pytest.mark.parametrize("values", ODD, ids=lambda values: f"{len(values)}x{values[:1]}")
@pytest.mark.parametrize("number", FILTERS)
def test_settings_of_any_filter_end_in_content_or_an_error(number: int, values: tuple[int, ...]) -> None:
    try:
        made = redo_filters(bytes(128), [Filter(number=number, name="", optional=False, values=values)])
    except H5ZarrError:
        return
    assert len(made) < 10_000

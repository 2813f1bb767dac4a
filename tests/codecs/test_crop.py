from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import zarr

from h5zarr.codecs.crop import Crop


def test_it_survives_json() -> None:
    codec = Crop((10, 8))
    assert codec.to_dict() == {"name": "h5zarr.crop", "configuration": {"stored_shape": [10, 8]}}
    assert Crop.from_dict(codec.to_dict()) == codec


@pytest.mark.parametrize(
    "data",
    [
        {"name": "h5zarr.crop"},
        {"name": "h5zarr.elements", "configuration": {"stored_shape": [1]}},
        {"name": "h5zarr.crop", "configuration": {"stored_shape": 3}},
        {"name": "h5zarr.crop", "configuration": {"stored_shape": [0]}},
        {"name": "h5zarr.crop", "configuration": {"stored_shape": ["1"]}},
        {"name": "h5zarr.crop", "configuration": {"stored_shape": [1], "more": 1}},
    ],
)
def test_any_other_configuration_is_refused(data: Any) -> None:
    with pytest.raises(ValueError, match=r"h5zarr\.crop"):
        Crop.from_dict(data)


def test_chunks_are_stored_in_full_and_read_in_part() -> None:
    values = np.arange(60, dtype="<i4").reshape(12, 5)
    store = zarr.storage.MemoryStore()
    array = zarr.create_array(
        store, shape=(12, 5), chunks=(4, 5), dtype="<i4", filters=[Crop((10, 8))], compressors=None, fill_value=7
    )
    array[...] = values
    np.testing.assert_array_equal(zarr.open_array(store, mode="r")[...], values)
    stored = np.frombuffer(store._store_dict["c/1/0"].to_bytes(), "<i4").reshape(10, 8)
    np.testing.assert_array_equal(stored[:4, :5], values[4:8])
    assert (stored[4:] == 7).all()


def test_a_chunk_larger_than_the_stored_bytes_is_an_error() -> None:
    store = zarr.storage.MemoryStore()
    array = zarr.create_array(store, shape=(4,), chunks=(4,), dtype="<i4", filters=[Crop((4,))], compressors=None)
    array[...] = 1
    content = store._store_dict["zarr.json"]
    document = json.loads(content.to_bytes())
    document["codecs"][0]["configuration"]["stored_shape"] = [3]
    store._store_dict["zarr.json"] = type(content).from_bytes(json.dumps(document).encode())
    store._store_dict["c/0"] = type(content).from_bytes(bytes(12))
    with pytest.raises(ValueError, match=r"a chunk of \(4,\) is not part of one of \(3,\)"):
        zarr.open_array(store, mode="r")[...]


def test_a_stored_shape_of_another_rank_is_an_error() -> None:
    settings = {"shape": (4, 4), "chunks": (4, 4), "dtype": "<i4", "compressors": None}
    # Newer versions of zarr raise it when they create the array.
    with pytest.raises(ValueError, match=r"h5zarr\.crop: stored_shape has rank 1, but the array has rank 2"):
        zarr.create_array(zarr.storage.MemoryStore(), filters=[Crop((4,))], **settings)[...] = 1

"""Messages that ordinary files do not cause, because something else refuses them first."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

import h5zarr
from h5zarr.commands.inspect.fill import _read_nothing
from h5zarr.commands.validate.rules import Level, Rule
from h5zarr.commands.validate.validate import Validation, _apply
from h5zarr.errors import Unsupported
from h5zarr.netcdf4.elsewhere import Nowhere


def test_a_short_dataset_with_unwritten_chunks_cannot_have_two_fill_values(tmp_path: Path) -> None:
    """Inside the dataset, unwritten values are zero. Beyond its end, netCDF reads its own default."""
    with h5py.File(tmp_path / "short.nc", "w") as file:
        time = file.create_dataset("time", data=np.arange(6.0), maxshape=(None,), chunks=(2,))
        time.make_scale("time")
        short = file.create_dataset("v", (4,), "f4", maxshape=(None,), chunks=(2,))
        short[:2] = 1
        short.dims[0].attach_scale(time)
    (problem,) = h5zarr.translate(tmp_path / "short.nc").problems
    assert problem.path == "/v"
    assert (
        "between the end of the dataset and the end of its dimension; Zarr has only one fill value" in problem.message
    )


def test_a_codec_for_text_does_not_accept_numbers(tmp_path: Path) -> None:
    h5zarr.translate(Path(__file__).parents[1] / "sample_data" / "ocean.nc", tmp_path / "refs.json")
    document = json.loads((tmp_path / "refs.json").read_text())
    metadata = json.loads(document["refs"]["lat/zarr.json"])
    metadata["codecs"] = [{"name": "vlen-utf8"}]
    document["refs"]["lat/zarr.json"] = json.dumps(metadata)
    (tmp_path / "refs.json").write_text(json.dumps(document))
    found = [one.message for one in h5zarr.validate(tmp_path / "refs.json").findings]
    assert "the codec vlen-utf8 does not accept elements of float32" in found


def test_values_in_another_file_need_that_file() -> None:
    with pytest.raises(Unsupported, match="the values are in another file, but only this one was opened"):
        Nowhere().run(1, iter(()))  # type: ignore[arg-type]


def test_fill_values_in_the_heap_are_not_read() -> None:
    with pytest.raises(Unsupported, match="fill values in the heap"):
        _read_nothing([])


def test_a_rule_that_fails_is_named_and_the_others_apply() -> None:
    def fail(_: object) -> None:
        raise KeyError("v")

    result = Validation("refs.json", 3, "json")
    rule = Rule(id="zarr3/made-up", level=Level.ERROR, section="", asks="", check=fail)  # type: ignore[arg-type]
    _apply(rule, None, result)  # type: ignore[arg-type]
    assert [one.reason for one in result.not_checked] == ["it could not be applied: KeyError"]

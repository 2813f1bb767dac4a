from __future__ import annotations

import json

import numpy as np

from h5zarr.commands.inspect.json import SCHEMA, describe, json_value
from h5zarr.hdf5.object_references import AttributeReference, ObjectReference
from h5zarr.io.log import RequestLog
from tests.commands.inspect.made import OBJECT, attribute, file, floating, group, integer, ocean, text

LOG = RequestLog(rounds=1, requests=2, nbytes=3)


def test_one_dataset_whole():
    described = describe(ocean(), 5000, LOG)
    assert described["datasets"]["/temp"] == {  # type: ignore[index, call-overload]
        "address": 12,
        "type": "int16",
        "shape": [240, 180],
        "max_shape": [None, 180],
        "dimensions": ["time", "lat"],
        "layout": {
            "kind": "chunked",
            "chunk_shape": [1, 180],
            "index": "B-tree v1",
            "chunks_stored": 200,
            "chunks_total": 240,
            "nbytes": 18000,
        },
        "filters": [
            {"number": 2, "name": "shuffle", "label": "shuffle", "optional": True, "values": [4]},
            {"number": 1, "name": "deflate", "label": "deflate(4)", "optional": True, "values": [4]},
        ],
        "fill": {"kind": "user", "value": -999},
        "attributes": {
            "units": {"type": "string (utf-8, variable)", "shape": [], "value": "K"},
            "scale_factor": {"type": "float32", "shape": [], "value": 0.009999999776482582},
            "_FillValue": {"type": "int16", "shape": [1], "value": [-999]},
            "DIMENSION_LIST": {
                "type": "sequence of object reference",
                "shape": [2],
                "value": [["/time"], ["/lat"]],
            },
        },
    }


def test_the_rest_of_the_description():
    described = describe(ocean(), 5000, LOG)
    assert described["version"] == 1
    assert described["counts"] == {"groups": 2, "datasets": 4, "chunks": 200}
    assert described["cost"] == {"rounds": 1, "requests": 2, "nbytes": 3}
    root = described["groups"]["/"]  # type: ignore[index, call-overload]
    assert root["dimensions"]["time"] == {"length": 240, "unlimited": True, "path": "/time"}  # type: ignore[index, call-overload]
    assert root["links"]["broken"] == {"kind": "hard", "path": None}  # type: ignore[index, call-overload]
    assert [problem["path"] for problem in described["problems"]] == ["/broken"]  # type: ignore[index, union-attr, call-overload]


def test_every_top_level_key_is_in_the_schema():
    keys = {line.split()[0] for line in SCHEMA.splitlines() if not line.startswith(" ")}
    assert set(describe(ocean(), 5000, LOG)) == keys - {"attributes"}


def test_it_is_strict_json_whatever_the_values():
    reference = np.empty(2, object)
    reference[:] = [ObjectReference(1), AttributeReference(ObjectReference(1), "a")]
    made = file(
        group(
            1,
            {},
            attribute("f", np.array([np.nan, np.inf, -np.inf, 1.5], np.float32), floating()),
            attribute("r", reference, OBJECT),
            attribute("n", None, integer()),
            text("t", "é"),
        )
    )
    described = json.loads(json.dumps(describe(made, 0, LOG), allow_nan=False))
    values = {name: each["value"] for name, each in described["groups"]["/"]["attributes"].items()}
    assert values == {
        "f": ["NaN", "Infinity", "-Infinity", 1.5],
        "r": ["/", {"path": "/", "attribute": "a"}],
        "n": None,
        "t": "é",
    }


def test_numpy_values_become_json():
    assert json_value(np.array((1, b"x"), [("a", "i4"), ("b", "S3")])) == {"a": 1, "b": "x"}
    assert json_value(np.array(1 + 2j)) == [1.0, 2.0]
    assert json_value(np.array(b"\x01\xff", "V2")) == "0x01ff"
    assert json_value(np.array([b"\xb5m", b"ok"])) == ["µm", "ok"]
    assert json_value(np.array(2**64 - 1, np.uint64)) == 2**64 - 1


def test_a_pattern_restricts_it_and_attributes_can_be_left_out():
    described = describe(ocean(), 5000, LOG, pattern="mask", attributes=False)
    assert list(described["datasets"]) == ["/grid/mask"]  # type: ignore[arg-type]
    assert described["groups"] == {}
    assert "attributes" not in described["datasets"]["/grid/mask"]  # type: ignore[index, operator, call-overload]

"""One example that passes and one that fails, for every rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.commands.validate.made import Change, Made, inline


@dataclass(frozen=True)
class Example:
    """Changes to valid references: one after which a rule still passes, and one after which it fails."""

    good: Change
    bad: Change
    form: str = "json3"
    bad_form: str = ""


def of_array(name: str = "v", **members: Any) -> Change:
    """Change members of an array's metadata; `...` removes one."""

    def change(made: Made) -> None:
        told = made.array(name)
        told |= members
        for key in [key for key, value in members.items() if value is ...]:
            del told[key]

    return change


def of_attributes(node: str = "v", /, **attributes: Any) -> Change:
    return lambda made: made.attributes(node).update(attributes)


def of_refs(**entries: Any) -> Change:
    return lambda made: made.refs.update(entries)


def of_ref(key: str, value: Any) -> Change:
    return lambda made: made.refs.update({key: value})


def of_document(**members: Any) -> Change:
    return lambda made: made.document.update(members)


def of_node(key: str, value: Any) -> Change:
    return lambda made: made.nodes.update({key: value})


def without(key: str) -> Change:
    return lambda made: made.nodes.pop(key)


def both(*changes: Change) -> Change:
    def change(made: Made) -> None:
        for one in changes:
            one(made)

    return change


def nothing(made: Made) -> None:
    """Leave the references unchanged."""


def typed(data_type: Any, fill: Any, serializer: Any = None, **attributes: Any) -> Change:
    """Give array v another type, and no chunks."""

    def change(made: Made) -> None:
        made.array().update(data_type=data_type, fill_value=fill)
        made.array()["codecs"] = [serializer or {"name": "bytes", "configuration": {"endian": "little"}}]
        made.attributes().update(attributes)
        made.refs = {key: value for key, value in made.refs.items() if not key.startswith("v/")}

    return change


def consolidated_v3(change_told: Any) -> Change:
    """Change the consolidated metadata, but not the nodes."""

    def change(made: Made) -> None:
        inside = {key.removesuffix("/zarr.json"): dict(told) for key, told in made.nodes.items() if "/" in key}
        told = {"kind": "inline", "must_understand": False, "metadata": inside}
        change_told(told)
        made.consolidated = told

    return change


def not_consolidated(made: Made) -> None:
    made.consolidated = False


def zlib_behind(made: Made) -> None:
    made.array()["codecs"].append({"name": "numcodecs.zlib", "configuration": {"level": 1}})


STRUCTURED = {"name": "structured", "configuration": {"fields": [["a", "int32"], ["b", "float32"]]}}
STRUCT = {"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int32"}]}}
RAW = {"name": "raw_bytes", "configuration": {"length_bytes": 4}}
TIME = {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}
BYTES = {"name": "bytes"}
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
TEXT = {"name": "vlen-utf8"}

REFERENCES = {
    "refs/version": Example(
        lambda made: made.document.clear() or made.document.update(version=1), of_document(version=2)
    ),
    "refs/generators": Example(of_document(gen=[]), of_document(gen=[{"key": "v/c/{{i}}/0"}])),
    "refs/templates": Example(
        both(of_document(templates={"u": "s3://bucket/file.nc"}), of_ref("v/c/0/0", ["{{u}}", 100, 16])),
        of_document(templates={"u": "{% for i in range(9) %}"}),
    ),
    "refs/metadata": Example(nothing, of_node("v/zarr.json", "{not JSON")),
    "refs/metadata-inside": Example(nothing, of_node("v/zarr.json", ["s3://bucket/v.json"])),
    "refs/repeated-names": Example(nothing, of_node("v/zarr.json", '{"zarr_format": 3, "zarr_format": 3}')),
    "refs/numbers": Example(of_attributes(a="NaN"), of_attributes(a=float("nan"))),
    "refs/stray-keys": Example(nothing, of_ref("other/c/0", "text")),
    "refs/absolute-urls": Example(of_ref("v/c/0/0", [None, 1, 16]), of_ref("v/c/0/0", ["data/file.nc", 1, 16])),
    "refs/one-protocol": Example(nothing, of_ref("v/c/0/0", ["https://host/file.nc", 1, 16])),
    "refs/record-size": Example(of_document(record_size=7), of_document(record_size=0), "parquet3"),
    "refs/parquet-files": Example(
        nothing, lambda made: made.files.update({"v/refs.0.parq": b"no Parquet"}), "parquet3"
    ),
    "refs/parquet-grid": Example(nothing, without("v/.zarray"), "parquet3"),
    "refs/entries": Example(of_ref("v/c/0/1", ["s3://bucket/whole.bin"]), of_ref("v/c/0/0", ["s3://bucket/f", -1, 16])),
    "refs/base64": Example(of_ref("v/c/0/0", inline(np.zeros(4, "f4"))), of_ref("v/c/0/0", "base64:?")),
    "refs/chunk-nbytes": Example(both(zlib_behind, of_ref("v/c/0/0", "short")), of_ref("v/c/0/0", "short")),
}

ZARR3 = {
    "zarr3/zarr-format": Example(nothing, of_array(zarr_format=2)),
    "zarr3/node-type": Example(nothing, of_array(node_type="table")),
    "zarr3/members": Example(of_array(attributes=...), of_array(fill_value=...)),
    "zarr3/unknown-members": Example(
        of_array(other={"name": "other", "must_understand": False}), of_array(other={"name": "other"})
    ),
    "zarr3/must-understand": Example(
        of_array(chunk_key_encoding={"name": "default", "must_understand": True}),
        of_array(chunk_key_encoding={"name": "default", "must_understand": False}),
    ),
    "zarr3/storage-transformers": Example(of_array(storage_transformers=[]), of_array(storage_transformers=["shards"])),
    "zarr3/attributes": Example(of_array(attributes={}), of_array(attributes=[1])),
    "zarr3/node-names": Example(
        of_node("g/_h/zarr.json", {"zarr_format": 3, "node_type": "group"}),
        of_node("g/__h/zarr.json", {"zarr_format": 3, "node_type": "group"}),
    ),
    "zarr3/parents": Example(nothing, without("g/zarr.json")),
    "zarr3/consolidated-form": Example(
        not_consolidated, consolidated_v3(lambda told: told.update(must_understand=True))
    ),
    "zarr3/consolidated-equal": Example(
        consolidated_v3(lambda told: None), consolidated_v3(lambda told: told["metadata"]["v"].update(shape=[4, 4]))
    ),
    "zarr3/shape": Example(of_array(shape=[4, 3]), of_array(shape=[4, -3])),
    "zarr3/data-type": Example(typed(TIME, 0), typed("float33", 0)),
    "zarr3/chunk-grid": Example(
        nothing, of_array(chunk_grid={"name": "regular", "configuration": {"chunk_shape": [2, 0]}})
    ),
    "zarr3/chunk-key-encoding": Example(
        of_array(chunk_key_encoding="default"),
        of_array(chunk_key_encoding={"name": "default", "configuration": {"separator": "-"}}),
    ),
    "zarr3/fill-value": Example(of_array(fill_value="0x7fc00001"), of_array(fill_value=None)),
    "zarr3/dimension-names": Example(of_array(dimension_names=["y", "x"]), of_array(dimension_names=["y"])),
    "zarr3/distinct-dimension-names": Example(
        nothing, both(of_array("v", dimension_names=["x", "x"]), of_array("v", shape=[3, 3]))
    ),
    "zarr3/registered-names": Example(typed(STRUCT, {"a": 0}), typed(STRUCTURED, "AAAAAAAAAAA=")),
    "zarr3/codecs": Example(of_array(codecs=[LITTLE]), of_array(codecs=[])),
    "zarr3/known-codecs": Example(
        of_array(codecs=[LITTLE, {"name": "zstd", "configuration": {"level": 1}}]),
        of_array(codecs=[LITTLE, "own.magic"]),
    ),
    "zarr3/codec-order": Example(
        of_array(codecs=[{"name": "transpose", "configuration": {"order": [1, 0]}}, LITTLE]),
        of_array(codecs=[LITTLE, {"name": "transpose", "configuration": {"order": [1, 0]}}]),
    ),
    "zarr3/serializer": Example(typed("string", "", TEXT), typed("string", "", BYTES)),
    "zarr3/endian": Example(of_array(codecs=[LITTLE]), of_array(codecs=[BYTES])),
    "zarr3/codec-settings": Example(
        of_array(codecs=[LITTLE, {"name": "gzip", "configuration": {"level": 9}}]),
        of_array(codecs=[LITTLE, {"name": "gzip", "configuration": {"level": 10}}]),
    ),
    "zarr3/chunk-keys": Example(nothing, of_ref("v/c/0", ["s3://bucket/file.nc", 1, 16])),
    "zarr3/chunks-inside": Example(
        of_ref("v/c/1/1", ["s3://bucket/file.nc", 1, 16]), of_ref("v/c/2/0", ["s3://bucket/file.nc", 1, 16])
    ),
}

ZARR2 = {
    "zarr2/zarr-format": Example(nothing, of_array(zarr_format=3), "json2"),
    "zarr2/members": Example(nothing, of_array(order=...), "json2"),
    "zarr2/other-members": Example(of_array(dimension_separator="."), of_array(other=1), "json2"),
    "zarr2/group-members": Example(nothing, of_node(".zgroup", {"zarr_format": 2, "other": 1}), "json2"),
    "zarr2/shape": Example(of_array(chunks=[2, 2]), of_array(chunks=[2]), "json2"),
    "zarr2/dtype": Example(of_array(dtype=">f4"), of_array(dtype="|f4"), "json2"),
    "zarr2/fill-value": Example(of_array(fill_value="NaN"), of_array(fill_value="nan"), "json2"),
    "zarr2/order": Example(of_array(order="F"), of_array(order="A"), "json2"),
    "zarr2/dimension-separator": Example(
        of_array("x", dimension_separator="/"), of_array("x", dimension_separator="-"), "json2"
    ),
    "zarr2/codecs": Example(of_array(compressor={"id": "zlib", "level": 1}), of_array(compressor="zlib"), "json2"),
    "zarr2/known-codecs": Example(
        of_array(filters=[{"id": "shuffle", "elementsize": 4}]), of_array(filters=[{"id": "magic"}]), "json2"
    ),
    "zarr2/paths": Example(nothing, of_node("g/../.zgroup", {"zarr_format": 2}), "json2"),
    "zarr2/ascii-keys": Example(nothing, of_node("gruppe_ä/.zgroup", {"zarr_format": 2}), "json2"),
    "zarr2/parents": Example(nothing, without("g/.zgroup"), "json2"),
    "zarr2/consolidated": Example(
        not_consolidated,
        lambda made: setattr(made, "consolidated", {"zarr_consolidated_format": 1, "metadata": {}}),
        "json2",
    ),
    "zarr2/chunk-keys": Example(nothing, of_ref("v/0/0", ["s3://bucket/file.nc", 1, 16]), "json2"),
    "zarr2/chunks-inside": Example(nothing, of_ref("v/0.2", ["s3://bucket/file.nc", 1, 16]), "json2"),
}

OTHERS = {
    "fill/form": Example(of_attributes(_FillValue="AAAAAAAA+D8="), of_attributes(_FillValue=1.5)),
    "fill/type": Example(of_attributes("x", _FillValue=-1), typed(TIME, 0, _FillValue=0)),
    "xarray/dimension-names": Example(nothing, of_array(dimension_names=["y", None])),
    "xarray/dimension-lengths": Example(nothing, of_array("x", shape=[4])),
    "xarray/dimension-coordinates": Example(nothing, of_array(dimension_names=["v", "x"])),
    "xarray/coordinates": Example(of_attributes(coordinates="x one"), of_attributes(coordinates="x lon")),
    "xarray/consolidated": Example(nothing, not_consolidated),
}

NZ = {
    "nz/zarr-v3": Example(nothing, nothing, bad_form="json2"),
    "nz/declaration": Example(
        of_attributes("", conventions="nz-1.0 CF-1.12"), of_attributes("", conventions="CF-1.12")
    ),
    "nz/declaration-order": Example(
        of_attributes("", conventions="NZ-1.0 CF-1.12"), of_attributes("", conventions="CF-1.12 NZ-1.0")
    ),
    "nz/registration": Example(
        of_attributes("", zarr_conventions=[{"uuid": "d0a980b5-c644-4dcc-85a1-283799a58f40"}]),
        of_attributes("", zarr_conventions=[{"uuid": "d0a980b5-c644-4dcc-85a1-283799a58f41"}]),
    ),
    "nz/schema-nodes": Example(nothing, of_array(attributes={})),
    "nz/dimension-names": Example(nothing, of_array(dimension_names=["y", ""])),
    "nz/shared-dimensions": Example(nothing, of_array("x", shape=[4])),
    "nz/scalar-arrays": Example(nothing, of_array("one", dimension_names=...)),
    "nz/dimension-coordinates": Example(
        of_refs(**{"x/c/0": inline(np.array([9, 5], "<i2")), "x/c/1": inline(np.array([4, 0], "<i2"))}),
        of_ref("x/c/0", inline(np.array([2, 2], "<i2"))),
    ),
    "nz/core-types": Example(typed("string", "", TEXT), typed("float16", 0)),
    "nz/string-type": Example(
        typed("string", "", TEXT),
        typed({"name": "null_terminated_bytes", "configuration": {"length_bytes": 4}}, "", BYTES),
    ),
    "nz/type-names": Example(nothing, typed(RAW, "AAAAAA==", BYTES)),
    "nz/missing-value": Example(of_attributes("x", _FillValue=-9999), of_attributes("x", _FillValue=99999)),
    "nz/attribute-homogeneity": Example(of_attributes(a=[1, 2.5]), of_attributes(a=[1, "x"])),
    "nz/reserved-names": Example(nothing, of_attributes("g", _FillValue=0)),
    "nz/name-slash": Example(of_attributes(**{"a.b": 1}), of_attributes(**{"a/b": 1})),
    "nz/name-letter": Example(of_attributes("x", _FillValue=0), of_attributes("x", _other=0)),
    "nz/name-characters": Example(of_attributes(**{"a-b.c_1": 1}), of_attributes(**{"a b": 1})),
    "nz/name-case": Example(
        of_attributes("", Conventions="CF-1.8"), of_node("V/zarr.json", {"zarr_format": 3, "node_type": "group"})
    ),
    "nz/consolidated-equal": Example(
        nothing, consolidated_v3(lambda told: told["metadata"]["v"].update(attributes={"other": 1}))
    ),
    "nz/consolidated": Example(nothing, not_consolidated),
}

EXAMPLES = {**REFERENCES, **ZARR3, **ZARR2, **OTHERS, **NZ}

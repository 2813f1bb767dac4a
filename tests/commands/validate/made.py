"""Valid references of each kind, for tests to change in one place."""

from __future__ import annotations

import copy
import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from h5zarr.commands.validate.raw import RawReferences
from h5zarr.commands.validate.reading import decode_json, decode_parquet
from h5zarr.zarr_model.nz.declare import DECLARATION

Json = Any
Change = Callable[["Made"], object]


@dataclass
class Made:
    """A reference file under construction: metadata by key, other entries, and the enclosing document."""

    form: str
    nodes: dict[str, Json]
    refs: dict[str, Json]
    document: dict[str, Json]
    consolidated: Json = None
    files: dict[str, bytes] = field(default_factory=dict)

    def array(self, name: str = "v") -> dict[str, Json]:
        """The metadata of an array."""
        found: dict[str, Json] = self.nodes[f"{name}/zarr.json" if self.form.endswith("3") else f"{name}/.zarray"]
        return found

    def attributes(self, name: str = "v") -> dict[str, Json]:
        """The attributes of a node; the root is ""."""
        prefix = f"{name}/".lstrip("/")
        key = f"{prefix}zarr.json" if self.form.endswith("3") else f"{prefix}.zattrs"
        found: dict[str, Json] = self.nodes[key]["attributes"] if self.form.endswith("3") else self.nodes[key]
        return found

    def decode(self) -> RawReferences:
        """Return the references as a reader sees them."""
        nodes = copy.deepcopy(self.nodes)
        if self.consolidated is not False:
            self._consolidate(nodes)
        if self.form.startswith("parquet"):
            told = {**self.document, "metadata": nodes}
            return decode_parquet(json.dumps(told).encode(), lambda names: self._load(names), "made")
        texts = {key: json.dumps(told) if isinstance(told, dict) else told for key, told in nodes.items()}
        return decode_json(json.dumps({**self.document, "refs": {**texts, **self.refs}}).encode(), "made")

    def _consolidate(self, nodes: dict[str, Json]) -> None:
        if self.form.endswith("3"):
            inside = {key.removesuffix("/zarr.json"): told for key, told in nodes.items() if key.endswith("/zarr.json")}
            made = {"kind": "inline", "must_understand": False, "metadata": inside}
            nodes["zarr.json"] = {**nodes["zarr.json"], "consolidated_metadata": self.consolidated or made}
        elif self.form == "json2":
            nodes[".zmetadata"] = self.consolidated or {"zarr_consolidated_format": 1, "metadata": dict(nodes)}

    def _load(self, names: tuple[str, ...]) -> dict[str, bytes]:
        return {name: self.files[name] for name in names if name in self.files}


def inline(values: Any) -> str:
    """Return an entry with the bytes of values."""
    return "base64:" + b64encode(np.asarray(values).tobytes()).decode()


def _array_v3(shape: list[int], data_type: str, names: list[str], **others: Json) -> dict[str, Json]:
    nbytes = np.dtype(data_type).itemsize if data_type != "string" else 0
    serializer = {"name": "bytes", "configuration": {"endian": "little"}} if nbytes > 1 else {"name": "bytes"}
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [max(1, min(2, one)) for one in shape]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [serializer],
        "attributes": {"zarr_conventions": [DECLARATION]},
        "dimension_names": names,
        **others,
    }


def _json_v3() -> Made:
    declared = {"conventions": "NZ-1.0", "zarr_conventions": [DECLARATION]}
    group = {"zarr_format": 3, "node_type": "group", "attributes": declared}
    nodes = {
        "zarr.json": group,
        "v/zarr.json": _array_v3([4, 3], "float32", ["y", "x"]),
        "x/zarr.json": _array_v3([3], "int16", ["x"]),
        "one/zarr.json": _array_v3([], "uint8", []),
        "g/zarr.json": group,
        "g/w/zarr.json": _array_v3([5], "float64", ["x"]),
    }
    refs = {
        "v/c/0/0": ["s3://bucket/file.nc", 100, 16],
        "v/c/1/0": ["s3://bucket/file.nc", 116, 16],
        "x/c/0": inline(np.array([1, 2], "<i2")),
        "x/c/1": inline(np.array([3, 0], "<i2")),
        "one/c": inline(np.uint8(7)),
        "g/w/c/0": ["s3://bucket/file.nc", 200, 16],
    }
    return Made("json3", copy.deepcopy(nodes), refs, {"version": 1})


def _array_v2(shape: list[int], dtype: str) -> dict[str, Json]:
    return {
        "zarr_format": 2,
        "shape": shape,
        "chunks": [max(1, min(2, one)) for one in shape],
        "dtype": dtype,
        "compressor": None,
        "fill_value": None,
        "order": "C",
        "filters": None,
    }


def _json_v2() -> Made:
    nodes = {
        ".zgroup": {"zarr_format": 2},
        ".zattrs": {},
        "v/.zarray": _array_v2([4, 3], "<f4"),
        "v/.zattrs": {"_ARRAY_DIMENSIONS": ["y", "x"]},
        "x/.zarray": _array_v2([3], "<i2"),
        "x/.zattrs": {"_ARRAY_DIMENSIONS": ["x"]},
        "g/.zgroup": {"zarr_format": 2},
        "g/w/.zarray": _array_v2([5], "<f8"),
        "g/w/.zattrs": {"_ARRAY_DIMENSIONS": ["x"]},
    }
    refs = {
        "v/0.0": ["s3://bucket/file.nc", 100, 16],
        "x/0": inline(np.array([1, 2], "<i2")),
        "x/1": inline(np.array([3, 0], "<i2")),
        "g/w/0": ["s3://bucket/file.nc", 200, 16],
    }
    return Made("json2", nodes, refs, {"version": 1})


def make(form: str) -> Made:
    """Return valid references: json3, json2, parquet3 or parquet2."""
    made = _json_v3() if form.endswith("3") else _json_v2()
    if form.startswith("parquet"):
        made.form, made.document, made.refs = form, {"record_size": 100}, {}
        if form == "parquet3":
            for key, told in [*made.nodes.items()]:
                if told["node_type"] == "array":
                    told["chunk_key_encoding"] = {"name": "v2", "configuration": {"separator": "."}}
                    stub = {"shape": told["shape"], "chunks": told["chunk_grid"]["configuration"]["chunk_shape"]}
                    made.nodes[key.replace("zarr.json", ".zarray")] = stub
    return made


def changed(form: str, change: Change) -> Made:
    """Return valid references after a change."""
    made = make(form)
    change(made)
    return made

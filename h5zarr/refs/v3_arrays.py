"""An array as Zarr version 3 metadata describe it. What stands there is kept, if it can be understood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.hierarchy import Json
from h5zarr.refs.array_metadata import ArrayMetadata, decode_attributes, decode_names, decode_shapes
from h5zarr.refs.chunk_keys import KeyLayout

_KNOWN = frozenset(
    {
        *("zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value"),
        *("codecs", "attributes", "dimension_names", "storage_transformers", "consolidated_metadata"),
    }
)


def decode_array_v3(path: str, metadata: Mapping[str, Json]) -> ArrayMetadata:
    """Return the array at `path`. Raises MalformedFile or Unsupported if the metadata do not tell how to read it."""
    _check_understood(metadata)
    grid, configuration = _decode_named(metadata.get("chunk_grid"), "grid of chunks")
    if grid != "regular":
        raise Unsupported(f'the grid of its chunks is "{grid}", and h5zarr knows regular ones')
    shape, chunk_shape = decode_shapes(metadata.get("shape"), configuration.get("chunk_shape"))
    _decode_named(metadata.get("data_type"), "data type")
    if metadata.get("fill_value") is None:
        raise MalformedFile("there is no fill value")
    return ArrayMetadata(
        shape=shape,
        data_type=metadata["data_type"],
        chunk_shape=chunk_shape,
        codecs=_decode_codecs(metadata.get("codecs")),
        fill_value=metadata["fill_value"],
        dimension_names=decode_names(metadata.get("dimension_names"), len(shape)),
        attributes=decode_attributes(metadata.get("attributes")),
        keys=_decode_key_encoding(path, metadata.get("chunk_key_encoding"), len(shape)),
    )


def _check_understood(metadata: Mapping[str, Json]) -> None:
    """Raise Unsupported for what a reader must understand, and h5zarr does not."""
    if metadata.get("storage_transformers"):
        raise Unsupported("it has storage transformers, which h5zarr does not know")
    for name, value in metadata.items():
        if name not in _KNOWN and not (isinstance(value, dict) and value.get("must_understand") is False):
            raise Unsupported(f'its metadata have "{name}", which h5zarr does not know')


def _decode_named(value: Json, what: str) -> tuple[str, dict[str, Any]]:
    """Return a name and a configuration: the specification allows the name alone."""
    match value:
        case str(name):
            return name, {}
        case {"name": str(name)}:
            configuration = value.get("configuration", {})
            if isinstance(configuration, dict):
                return name, configuration
    raise MalformedFile(f"the {what} is neither a name, nor an object with a name and a configuration")


def _decode_codecs(value: Json) -> tuple[Json, ...]:
    """Return the codecs, each of them as an object."""
    if not isinstance(value, list) or not value:
        raise MalformedFile("the codecs are no list of one or more")
    for codec in value:
        _decode_named(codec, "codec")
    return tuple({"name": codec} if isinstance(codec, str) else codec for codec in value)


def _decode_key_encoding(path: str, value: Json, rank: int) -> KeyLayout:
    """Return how keys of chunks are written. The separators are those that the specification has if none is given."""
    name, configuration = _decode_named(value, "encoding of chunk keys")
    if name not in ("default", "v2"):
        raise Unsupported(f'its chunks have keys in the encoding "{name}", which h5zarr does not know')
    separator = configuration.get("separator", "/" if name == "default" else ".")
    if separator not in ("/", "."):
        raise MalformedFile("the separator in chunk keys is neither a slash nor a dot")
    return KeyLayout(path, "c" if name == "default" else "", separator, rank)

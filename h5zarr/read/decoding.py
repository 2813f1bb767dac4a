"""Decode chunks: the codecs of an array as one function from bytes to values, built once for all chunks."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.errors import SURPRISES, H5ZarrError, MalformedFile, surprised
from h5zarr.filters.pipeline import undo_filters
from h5zarr.filters.shuffle import unshuffled
from h5zarr.limits import USUAL, Limits
from h5zarr.zarr_model.codecs import ELEMENTS_CODEC, CodecFilter, byte_order, find_filter, split_crop, split_transpose
from h5zarr.zarr_model.data_types import decode_data_type
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, Json
from h5zarr.zarr_model.vlen_text import decode_texts

Content: TypeAlias = bytes | memoryview
Shape: TypeAlias = tuple[int, ...]
Decode: TypeAlias = Callable[[Content, Shape], npt.NDArray[Any]]
"""Turns the bytes of a chunk into its values, given the shape in which it is stored."""

_SHUFFLE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """Turns the bytes of a chunk into its values.

    `stored_shape` is the shape in which every chunk is stored; None if chunks are stored as the grid divides the array,
    in different shapes. `is_plain`: the bytes are the values, so that they can be read directly into the result.
    """

    dtype: np.dtype[Any]
    decode: Decode
    stored_shape: Shape | None
    is_plain: bool = False


def find_decoder(node: ArrayNode, limits: Limits = USUAL) -> Decoder | None:
    """Return the decoder of an array's chunks; None if a codec or the data type is not supported here."""
    try:
        decoder = _find_decoder(node, limits)
    except (H5ZarrError, *SURPRISES):
        return None
    return None if decoder is None else replace(decoder, decode=_guarded(decoder.decode))


def _guarded(decode: Decode) -> Decode:
    """Return a decoder that raises MalformedFile for unexpected exceptions: codec settings are untrusted."""

    def guarded(content: Content, shape: Shape) -> npt.NDArray[Any]:
        try:
            return decode(content, shape)
        except H5ZarrError:
            raise
        except SURPRISES as error:
            raise surprised(error) from error

    return guarded


def _find_decoder(node: ArrayNode, limits: Limits) -> Decoder | None:
    stored_shape, codecs = split_crop(node.codecs, len(node.shape))
    if stored_shape is None and isinstance(node.grid, RegularGrid):
        stored_shape = node.chunk_shape
    order, (first, *others) = split_transpose(codecs, len(node.shape))
    decoder = _find_plain_decoder(node, stored_shape, first, others, limits)
    if decoder is None or list(order) == sorted(order):
        return decoder
    return replace(decoder, decode=_transposed(decoder.decode, order), is_plain=False)


def _find_plain_decoder(
    node: ArrayNode, stored_shape: Shape | None, first: Json, others: Sequence[Json], limits: Limits
) -> Decoder | None:
    """Return the decoder of chunks whose dimensions are in the order of the array."""
    dtype = decode_data_type(node.data_type, byte_order(node.codecs))
    make = partial(Decoder, dtype=dtype, stored_shape=stored_shape)
    if first["name"] == "vlen-utf8":
        return make(decode=_texts(_filters(others), limits))
    if first["name"] != "bytes":
        return None
    if others and others[0]["name"] == ELEMENTS_CODEC:
        message = b64decode(others[0]["configuration"]["datatype"])
        return make(decode=_converted(dtype, message, _filters(others[1:]), limits))
    filters = _filters(others)
    if not filters:
        return make(decode=_plain(dtype), is_plain=True)
    return make(decode=_filtered(dtype, filters, limits))


def _transposed(decode: Decode, order: Shape) -> Decode:
    """Return a decoder of chunks whose dimension i is dimension `order[i]` of the array."""
    inverse = np.argsort(order)

    def transposed(content: Content, shape: Shape) -> npt.NDArray[Any]:
        return decode(content, tuple(shape[axis] for axis in order)).transpose(inverse)

    return transposed


def _filters(codecs: Sequence[Json]) -> tuple[CodecFilter, ...]:
    return tuple(map(find_filter, codecs))


def _plain(dtype: np.dtype[Any]) -> Decode:
    def decode(content: Content, shape: Shape) -> npt.NDArray[Any]:
        _check(len(content), dtype.itemsize * prod(shape))
        return np.frombuffer(content, dtype).reshape(shape)

    return decode


def _filtered(dtype: np.dtype[Any], filters: tuple[CodecFilter, ...], limits: Limits) -> Decode:
    ends_in_shuffle = filters[0].number == _SHUFFLE and filters[0].values == (dtype.itemsize,) and dtype.itemsize > 1
    behind = filters[1:] if ends_in_shuffle else filters

    def decode(content: Content, shape: Shape) -> npt.NDArray[Any]:
        nbytes = dtype.itemsize * prod(shape)
        _check_size(nbytes, limits)
        plain = undo_filters(bytes(content), behind, 0, nbytes)
        _check(len(plain), nbytes)
        if ends_in_shuffle:
            return unshuffled(plain, dtype.itemsize).view(dtype).reshape(shape)
        return np.frombuffer(plain, dtype).reshape(shape)

    return decode


def _converted(dtype: np.dtype[Any], message: bytes, filters: tuple[CodecFilter, ...], limits: Limits) -> Decode:
    """Decode elements that numpy has no type for. An array type holds several Zarr elements."""
    # Imported here, because few arrays have such elements, and reading others does not need the HDF5 parser.
    from h5zarr.netcdf4.conversion import convert_elements, stored_nbytes

    per_element = convert_elements(message, bytes(stored_nbytes(message))).size
    element_nbytes = stored_nbytes(message)

    def decode(content: Content, shape: Shape) -> npt.NDArray[Any]:
        nbytes = element_nbytes * (prod(shape) // per_element)
        if filters:
            _check_size(nbytes, limits)
        plain = undo_filters(bytes(content), filters, 0, nbytes)
        _check(len(plain), nbytes)
        return convert_elements(message, plain).astype(dtype, copy=False).reshape(shape)

    return decode


def _texts(filters: tuple[CodecFilter, ...], limits: Limits) -> Decode:
    def decode(content: Content, shape: Shape) -> npt.NDArray[Any]:
        plain = bytes(content)
        if filters:
            plain = undo_filters(plain, filters, 0, min(limits.chunk_nbytes, 2**31 - 1))
        return decode_texts(plain, prod(shape)).reshape(shape)

    return decode


def _check_size(nbytes: int, limits: Limits) -> None:
    """Raise if a decoded chunk would exceed the limit, whatever its size in the file."""
    limits.check("chunk_nbytes", nbytes, f"a chunk takes {nbytes:,} bytes when it is decoded")


def _check(found: int, expected: int) -> None:
    if found != expected:
        raise MalformedFile(f"a chunk has {found} bytes instead of {expected}")

"""Filter 5, nbit: only the significant bits of every number, one after the other. Source: H5Znbit.c.

What is restored has zeros in the bits that were not stored, and in the gaps of compounds.
"""

from __future__ import annotations

import numpy as np

from h5zarr.errors import Unsupported
from h5zarr.filters.bounds import check_room
from h5zarr.filters.nbit_settings import Layout, Settings, array_base, layout_nbytes
from h5zarr.filters.packing import Places, number_places, pack, unpack
from h5zarr.filters.settings import settings_of

__all__ = ["Settings", "decode", "encode"]

_GREATEST_ELEMENT_NBYTES = 1 << 20  # a description of every bit of an element takes 64 times its size


def decode(content: bytes, values: tuple[int, ...], nbytes: int) -> bytes:
    """Return the elements with their bits where they belong."""
    settings = settings_of(Settings, values)
    if settings.layout is None:
        return content
    check_room(settings.nbytes, nbytes, "nbit content")
    count, layout = _flattened(settings)
    return unpack(content, count, _places(layout), layout_nbytes(layout)).tobytes()


def encode(content: bytes, values: tuple[int, ...]) -> bytes:
    """Return the significant bits of all elements."""
    settings = settings_of(Settings, values)
    if settings.layout is None:
        return content
    if len(content) != settings.nbytes:
        raise ValueError(f"nbit is set up for {settings.nbytes} bytes, not {len(content)}")
    count, layout = _flattened(settings)
    places = _places(layout)
    elements = np.frombuffer(content, np.uint8).reshape(count, layout_nbytes(layout))
    # libhdf5 always allots the byte behind the last whole one.
    return pack(elements, places).ljust(count * len(places) // 8 + 1, b"\0")


def _flattened(settings: Settings) -> tuple[int, Layout]:
    """Return the count and layout of elements, arrays being taken as so many of their base."""
    count, layout = settings.count, settings.layout
    assert layout is not None
    while layout["kind"] == "array":
        base = array_base(layout)
        count *= layout["nbytes"] // layout_nbytes(base)
        layout = base
    if layout_nbytes(layout) > _GREATEST_ELEMENT_NBYTES:
        raise Unsupported(f"filter 5 (nbit) has elements of {layout_nbytes(layout)} bytes")
    return count, layout


def _places(layout: Layout) -> Places:
    """Return where the stored bits of an element belong, in the order in which they are stored."""
    match layout["kind"]:
        case "number":
            return number_places(layout["nbytes"], layout["byte_order"], layout["precision"], layout["bit_offset"])
        case "array":
            base = array_base(layout)
            starts = np.arange(0, layout["nbytes"], layout_nbytes(base), dtype=np.int64) * 8
            return np.add.outer(starts, _places(base)).reshape(-1)
        case "compound":
            parts = [_places(member["layout"]) + 8 * member["position"] for member in layout["members"]]
            return np.concatenate(parts) if parts else np.empty(0, np.int64)
    return np.arange(8 * layout["nbytes"], dtype=np.int64)

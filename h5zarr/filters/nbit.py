"""Filter 5, nbit: the significant bits of every number, without gaps. Source: H5Znbit.c.

Decoding puts zeros into the bits that were not stored, and into the gaps of compounds.

Client data: the number of values, whether content is unchanged, the number of elements, and the layout of an element.
A layout is one of: number (1, bytes, byte order, precision, bit offset), array (2, bytes, layout of the base), compound
(3, bytes, count of members, and for each its position and layout), and other types, which are stored whole (4, bytes).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np

from h5zarr.errors import Unsupported
from h5zarr.filters.packing import Places, number_places, pack, unpack
from h5zarr.filters.toolkit import Values, check, check_choice, check_room, settings_of

Layout: TypeAlias = dict[str, Any]

_NUMBER, _ARRAY, _COMPOUND, _WHOLE = 1, 2, 3, 4
_BYTE_ORDERS = ("little", "big")
_DEEPEST = 32
_GREATEST_ELEMENT_NBYTES = 1 << 20  # a description of every bit of an element takes 64 times its size
_FIELDS = {
    "number": {"kind", "nbytes", "byte_order", "precision", "bit_offset"},
    "array": {"kind", "nbytes", "base"},
    "compound": {"kind", "nbytes", "members"},
    "whole": {"kind", "nbytes"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The number of elements, and which of their bits are stored; None if the filter leaves content unchanged."""

    count: int
    layout: Layout | None

    def __post_init__(self) -> None:
        check(self.count, "count", 0, 2**32 - 1)
        if self.layout is not None:
            _check_layout(self.layout, 0)

    @classmethod
    def from_values(cls, values: Values) -> Self:
        if len(values) < 3 or values[0] != len(values):
            raise ValueError(f"the first value must be the number of values, which is {len(values)} and at least 3")
        if values[1]:
            return cls(count=values[2], layout=None)
        return cls(count=values[2], layout=_Reading(values).layout(0))

    def to_values(self) -> Values:
        described = () if self.layout is None else tuple(_layout_values(self.layout))
        return (3 + len(described), int(self.layout is None), self.count, *described)

    @property
    def nbytes(self) -> int:
        return self.count * layout_nbytes(self.layout) if self.layout is not None else 0


def layout_nbytes(layout: Layout) -> int:
    """Return the size of an element."""
    nbytes: int = layout["nbytes"]
    return nbytes


def array_base(layout: Layout) -> Layout:
    """Return the layout of an array's elements."""
    base: Layout = layout["base"]
    return base


def decode(content: bytes, values: Values, nbytes: int) -> bytes:
    """Return the elements with their bits in place."""
    settings = settings_of(Settings, values)
    if settings.layout is None:
        return content
    check_room(settings.nbytes, nbytes, "nbit content")
    count, layout = _flattened(settings)
    return unpack(content, count, _places(layout), layout_nbytes(layout)).tobytes()


def encode(content: bytes, values: Values) -> bytes:
    """Return the significant bits of all elements."""
    settings = settings_of(Settings, values)
    if settings.layout is None:
        return content
    if len(content) != settings.nbytes:
        raise ValueError(f"nbit expects {settings.nbytes} bytes, not {len(content)}")
    count, layout = _flattened(settings)
    places = _places(layout)
    elements = np.frombuffer(content, np.uint8).reshape(count, layout_nbytes(layout))
    # libhdf5 always allocates the byte after the last whole one.
    return pack(elements, places).ljust(count * len(places) // 8 + 1, b"\0")


def _flattened(settings: Settings) -> tuple[int, Layout]:
    """Return the count and layout of elements, with arrays replaced by their elements."""
    count, layout = settings.count, settings.layout
    assert layout is not None
    while layout["kind"] == "array":
        base = array_base(layout)
        count *= layout["nbytes"] // layout_nbytes(base)
        layout = base
    if layout_nbytes(layout) > _GREATEST_ELEMENT_NBYTES:
        raise Unsupported(
            f"filter 5 (nbit) has elements of {layout_nbytes(layout)} bytes; h5zarr supports up to "
            f"{_GREATEST_ELEMENT_NBYTES}"
        )
    return count, layout


def _places(layout: Layout) -> Places:
    """Return the positions of an element's stored bits, in the order of storage."""
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


# --- layouts in client data


class _Reading:
    """Reads a layout from client data, in the order of libhdf5."""

    def __init__(self, values: Values) -> None:
        self._values = iter(values[3:])
        self._is_derailed = False

    def layout(self, depth: int) -> Layout:
        if depth > _DEEPEST:
            raise ValueError(f"layouts are nested more than {_DEEPEST} deep")
        code, nbytes = self._take(), self._take()
        match code:
            case 1:
                order, precision, bit_offset = self._take(), self._take(), self._take()
                return {
                    "kind": "number",
                    "nbytes": nbytes,
                    "byte_order": _BYTE_ORDERS[order] if order < 2 else order,
                    "precision": precision,
                    "bit_offset": bit_offset,
                }
            case 2:
                return self._array(nbytes, depth)
            case 3:
                return {"kind": "compound", "nbytes": nbytes, "members": list(self._members(depth))}
            case 4:
                return {"kind": "whole", "nbytes": nbytes}
        raise ValueError(f"{code} is not a kind of layout")

    def _array(self, nbytes: int, depth: int) -> Layout:
        base = self.layout(depth + 1)
        if base["kind"] == "whole":
            base = {"kind": "whole", "nbytes": nbytes}  # libhdf5 ignores its size
        # libhdf5 does not skip the base of such an array. If a member follows, writing loses values and reading fails.
        self._is_derailed |= base["kind"] in ("array", "compound")
        return {"kind": "array", "nbytes": nbytes, "base": base}

    def _members(self, depth: int) -> Iterator[Layout]:
        for _ in range(self._take()):
            if self._is_derailed:
                raise ValueError("a member follows an array of arrays or compounds, which libhdf5 stores wrongly")
            yield {"position": self._take(), "layout": self.layout(depth + 1)}

    def _take(self) -> int:
        try:
            return next(self._values)
        except StopIteration:
            raise ValueError("the layout of an element is cut short") from None


def _layout_values(layout: Layout) -> Iterator[int]:
    nbytes = layout_nbytes(layout)
    match layout["kind"]:
        case "number":
            order = _BYTE_ORDERS.index(layout["byte_order"])
            yield from (_NUMBER, nbytes, order, layout["precision"], layout["bit_offset"])
        case "array":
            yield from (_ARRAY, nbytes, *_layout_values(array_base(layout)))
        case "compound":
            yield from (_COMPOUND, nbytes, len(layout["members"]))
            for member in layout["members"]:
                yield from (member["position"], *_layout_values(member["layout"]))
        case _:
            yield from (_WHOLE, nbytes)


def _check_layout(layout: object, depth: int) -> None:
    """Raise ValueError unless the layout has the fields of its kind and encloses its parts."""
    kind = layout.get("kind") if isinstance(layout, dict) else None
    if not isinstance(layout, dict) or kind not in _FIELDS or set(layout) != _FIELDS[kind] or depth > _DEEPEST:
        raise ValueError(f"{layout!r} is not a layout of an element")
    check(layout["nbytes"], "nbytes", 1, 2**32 - 1)
    nbytes = layout_nbytes(layout)
    if kind == "number":
        check_choice(layout["byte_order"], "byte_order", _BYTE_ORDERS)
        check(layout["precision"], "precision", 1, 8 * nbytes)
        check(layout["bit_offset"], "bit_offset", 0, 8 * nbytes - layout["precision"])
    elif kind == "array":
        _check_layout(layout["base"], depth + 1)
        if nbytes % layout_nbytes(array_base(layout)):
            raise ValueError(f"an array of {nbytes} bytes is not a multiple of {layout_nbytes(array_base(layout))}")
    elif kind == "compound":
        if not isinstance(layout["members"], (list, tuple)):
            raise ValueError(f"members must be a list, not {layout['members']!r}")
        for member in layout["members"]:
            if not isinstance(member, dict) or set(member) != {"position", "layout"}:
                raise ValueError(f"{member!r} is not a member of a compound")
            _check_layout(member["layout"], depth + 1)
            check(member["position"], "position", 0, nbytes - layout_nbytes(member["layout"]))
        if sum(layout_nbytes(member["layout"]) for member in layout["members"]) > nbytes:
            raise ValueError(f"members take more than the {nbytes} bytes of their compound")

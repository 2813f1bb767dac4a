"""The client data of the filter nbit by name: which bits of an element are significant. Source: H5Znbit.c.

The values are their own count, whether there is nothing to do, the count of elements, and the layout of an element,
which is one of: number (1, bytes, byte order, precision, bit offset), array (2, bytes, layout of the base), compound
(3, bytes, count of members, and for each its position and layout), and anything else, which is stored whole (4,
bytes).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

from h5zarr.filters.settings import check, check_choice

Layout: TypeAlias = dict[str, Any]

_NUMBER, _ARRAY, _COMPOUND, _WHOLE = 1, 2, 3, 4
_BYTE_ORDERS = ("little", "big")
_DEEPEST = 32
_FIELDS = {
    "number": {"kind", "nbytes", "byte_order", "precision", "bit_offset"},
    "array": {"kind", "nbytes", "base"},
    "compound": {"kind", "nbytes", "members"},
    "whole": {"kind", "nbytes"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How many elements there are, and which of their bits are stored; None where that is all of them, unchanged."""

    filter_name: ClassVar = "nbit"

    count: int
    layout: Layout | None

    def __post_init__(self) -> None:
        check(self.count, "count", 0, 2**32 - 1)
        if self.layout is not None:
            _check_layout(self.layout, 0)

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        if len(values) < 3 or values[0] != len(values):
            raise ValueError(f"nbit has {len(values)} values, which are not as many as they say")
        if values[1]:
            return cls(count=values[2], layout=None)
        return cls(count=values[2], layout=_Reading(values).layout(0))

    def to_values(self) -> tuple[int, ...]:
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
    """Return the layout of what an array consists of."""
    base: Layout = layout["base"]
    return base


class _Reading:
    """Takes a layout from client data, as libhdf5 walks it."""

    def __init__(self, values: tuple[int, ...]) -> None:
        self._values = iter(values[3:])
        self._is_derailed = False

    def layout(self, depth: int) -> Layout:
        if depth > _DEEPEST:
            raise ValueError("layouts are nested too deeply")
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
        raise ValueError(f"{code} is no kind of layout")

    def _array(self, nbytes: int, depth: int) -> Layout:
        base = self.layout(depth + 1)
        if base["kind"] == "whole":
            base = {"kind": "whole", "nbytes": nbytes}  # libhdf5 does not look at the size of one
        # libhdf5 forgets to go on behind the base of such an array. Where something follows, it goes wrong:
        # when it writes, values are lost, and reading fails.
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
    """Raise ValueError unless the layout has the fields of its kind, and its parts lie within it."""
    kind = layout.get("kind") if isinstance(layout, dict) else None
    if not isinstance(layout, dict) or kind not in _FIELDS or set(layout) != _FIELDS[kind] or depth > _DEEPEST:
        raise ValueError(f"{layout!r} is no layout of an element")
    check(layout["nbytes"], "nbytes", 1, 2**32 - 1)
    nbytes = layout_nbytes(layout)
    if kind == "number":
        check_choice(layout["byte_order"], "byte_order", _BYTE_ORDERS)
        check(layout["precision"], "precision", 1, 8 * nbytes)
        check(layout["bit_offset"], "bit_offset", 0, 8 * nbytes - layout["precision"])
    elif kind == "array":
        _check_layout(layout["base"], depth + 1)
        if nbytes % layout_nbytes(array_base(layout)):
            raise ValueError(f"an array of {nbytes} bytes does not consist of {layout_nbytes(array_base(layout))}")
    elif kind == "compound":
        if not isinstance(layout["members"], (list, tuple)):
            raise ValueError(f"members must be a list, not {layout['members']!r}")
        for member in layout["members"]:
            if not isinstance(member, dict) or set(member) != {"position", "layout"}:
                raise ValueError(f"{member!r} is no member of a compound")
            _check_layout(member["layout"], depth + 1)
            check(member["position"], "position", 0, nbytes - layout_nbytes(member["layout"]))
        if sum(layout_nbytes(member["layout"]) for member in layout["members"]) > nbytes:
            raise ValueError(f"members have more than the {nbytes} bytes of their compound")

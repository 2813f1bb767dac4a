"""How a dataset is stored, in a few words."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from h5zarr.commands.inspect.fill import fill_text
from h5zarr.commands.inspect.selections import selection_text
from h5zarr.display import counted, quoted, size
from h5zarr.filters.table import filter_label
from h5zarr.hdf5.model import (
    ChunkedLayout,
    CompactLayout,
    ContiguousLayout,
    Dataset,
    Dataspace,
    ExternalLayout,
    FillKind,
    IndexKind,
    SpaceKind,
    VirtualLayout,
)

BETWEEN = " · "


def shape_text(space: Dataspace, names: Iterable[str | None]) -> str:
    """Return `(time=240, lat=180)`. Axes without a name show their maximum: `(240/unlimited, 180)`."""
    if space.kind is SpaceKind.NULL:
        return "null"
    if space.kind is SpaceKind.SCALAR:
        return "scalar"
    limits = space.max_shape or space.shape
    axes = (
        f"{name}={extent}" if name else str(extent) if limit == extent else f"{extent}/{limit or 'unlimited'}"
        for name, extent, limit in zip(names, space.shape, limits, strict=True)
    )
    return f"({', '.join(axes)})"


def storage_text(dataset: Dataset) -> str:
    """Return layout, filters and fill: `chunks (1, 180) · 240 of 240 · B-tree v1 · deflate(4) · 3.1 MB (4.2:1)`."""
    return BETWEEN.join([*_layout(dataset), *_fill(dataset)])


def storage_details(dataset: Dataset, limit: int | None) -> list[str]:
    """Return one line for each of the first `limit` mappings or external segments, and the number of others."""
    lines: list[str] = []
    match dataset.layout:
        case VirtualLayout(mappings):
            lines = [
                f"{selection_text(each.virtual_selection)} from "
                f"{_file(each.source_file)}{each.source_dataset}{selection_text(each.source_selection)}"
                for each in mappings[:limit]
            ]
            things = "mapping"
        case ExternalLayout(segments):
            lines = [
                f"{quoted(each.file)} from byte {each.address:,}, "
                + ("to the end" if each.nbytes is None else size(each.nbytes))
                for each in segments[:limit]
            ]
            things = "segment"
        case _:
            return []
    count = _piece_count(dataset)
    return [*lines, f"… {counted(count - len(lines), f'more {things}')}"] if count > len(lines) else lines


def chunk_total(shape: tuple[int, ...], chunk_shape: tuple[int, ...]) -> int:
    """Return the number of chunks that cover a shape, stored or not."""
    return prod(-(-extent // chunk) for extent, chunk in zip(shape, chunk_shape, strict=True) if chunk)


def _piece_count(dataset: Dataset) -> int:
    match dataset.layout:
        case VirtualLayout(mappings):
            return len(mappings)
        case ExternalLayout(segments):
            return len(segments)
    return 0


def _layout(dataset: Dataset) -> list[str]:
    match dataset.layout:
        case CompactLayout(content):
            return [f"compact {size(len(content))}"]
        case ContiguousLayout(address, nbytes):
            return ["contiguous, not allocated" if address is None else f"contiguous {size(nbytes)}"]
        case ChunkedLayout():
            return _chunks(dataset, dataset.layout)
        case VirtualLayout(mappings):
            return [f"virtual, {counted(len(mappings), 'mapping')}"]
        case ExternalLayout(segments):
            return [f"external, {counted(len(segments), 'segment')}"]


def _chunks(dataset: Dataset, layout: ChunkedLayout) -> list[str]:
    stored, total = len(layout.chunks), chunk_total(dataset.dataspace.shape, layout.chunk_shape)
    shape = ", ".join(str(extent) for extent in layout.chunk_shape)
    parts = [f"chunks ({shape})", f"{stored:,} of {total:,}"]
    if layout.index_kind is not IndexKind.SINGLE:
        parts.append(layout.index_kind.value)
    if dataset.filters:
        parts.append(", ".join(filter_label(each) for each in dataset.filters))
    if stored:
        nbytes = int(layout.chunks.nbytes.sum())
        whole = stored * prod(layout.chunk_shape) * dataset.datatype.nbytes
        parts.append(size(nbytes) + (f" ({ratio_text(whole / nbytes)}:1)" if dataset.filters and nbytes else ""))
    return parts


def _fill(dataset: Dataset) -> list[str]:
    """Return a user-defined fill value, unless it is zero or an empty string."""
    if dataset.fill.kind is FillKind.USER_DEFINED:
        said = fill_text(dataset.fill, dataset.datatype)
        return [f"fill {said}"] if said != '""' else []
    return ["fill undefined"] if dataset.fill.kind is FillKind.UNDEFINED else []


def ratio_text(ratio: float) -> str:
    """Return how many times smaller something is, with one digit after the point unless it is large."""
    return f"{ratio:.1f}" if ratio < 99.95 else f"{ratio:,.0f}"


def _file(name: str) -> str:
    """Return the file name of a virtual mapping; a dot means the file itself."""
    return "" if name == "." else f"{name}:"

"""Scanned files made by hand, without any bytes."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from h5zarr.errors import Problem
from h5zarr.hdf5.datatype import (
    ByteOrder,
    Charset,
    Datatype,
    FixedPoint,
    FloatingPoint,
    Normalization,
    Padding,
    Reference,
    ReferenceKind,
    String,
    VariableLengthSequence,
    VariableLengthString,
)
from h5zarr.hdf5.model import (
    Attribute,
    ChunkedLayout,
    ChunkTable,
    ContentReader,
    ContiguousLayout,
    Dataset,
    Dataspace,
    FillKind,
    FillValue,
    Filter,
    Group,
    H5File,
    HardLink,
    IndexKind,
    Layout,
    Link,
    Object,
    SpaceKind,
)
from h5zarr.hdf5.object_references import ObjectReference

TEXT = VariableLengthString(nbytes=16, padding=Padding.NULL_TERMINATED, charset=Charset.UTF8)
OBJECT = Reference(nbytes=8, kind=ReferenceKind.OBJECT)
SHUFFLE = Filter(number=2, name="shuffle", optional=True, values=(4,))
DEFLATE = Filter(number=1, name="deflate", optional=True, values=(4,))
NO_FILL = FillValue(kind=FillKind.LIBRARY_DEFAULT)


def integer(nbytes: int = 4, *, signed: bool = True, order: ByteOrder = ByteOrder.LITTLE, **bits: int) -> FixedPoint:
    form = {"bit_offset": 0, "precision": 8 * nbytes} | bits
    return FixedPoint(nbytes=nbytes, order=order, signed=signed, **form)


def floating(nbytes: int = 4, order: ByteOrder = ByteOrder.LITTLE) -> FloatingPoint:
    mantissa, exponent = {2: (10, 5), 4: (23, 8), 8: (52, 11)}[nbytes]
    return FloatingPoint(
        nbytes=nbytes,
        order=order,
        bit_offset=0,
        precision=8 * nbytes,
        sign_location=8 * nbytes - 1,
        exponent_location=mantissa,
        exponent_nbits=exponent,
        mantissa_location=0,
        mantissa_nbits=mantissa,
        exponent_bias=2 ** (exponent - 1) - 1,
        normalization=Normalization.IMPLIED,
    )


def space(*shape: int, unlimited: tuple[int, ...] = ()) -> Dataspace:
    if not shape:
        return Dataspace(SpaceKind.SCALAR)
    limits = tuple(None if axis in unlimited else extent for axis, extent in enumerate(shape))
    return Dataspace(SpaceKind.SIMPLE, shape, limits)


def attribute(name: str, value: Any, datatype: Datatype) -> Attribute:
    extent = space(*value.shape) if value is not None else Dataspace(SpaceKind.NULL)
    return Attribute(name=name, datatype=datatype, dataspace=extent, value=value)


def text(name: str, value: str) -> Attribute:
    array = np.empty((), object)
    array[()] = value.encode()
    return attribute(name, array, TEXT)


def dimension_list(*addresses: int) -> Attribute:
    """Return a DIMENSION_LIST with one scale for each axis."""
    value = np.empty(len(addresses), object)
    for axis, address in enumerate(addresses):
        scales = np.empty(1, object)
        scales[0] = ObjectReference(address)
        value[axis] = scales
    return attribute("DIMENSION_LIST", value, VariableLengthSequence(nbytes=16, base=OBJECT))


def scale(name: str) -> tuple[Attribute, Attribute]:
    """Return the attributes that make a dataset a dimension scale, as the library writes them."""
    return fixed_text("CLASS", "DIMENSION_SCALE"), fixed_text("NAME", name)


def fixed_text(name: str, value: str) -> Attribute:
    datatype = String(nbytes=len(value) + 1, padding=Padding.NULL_TERMINATED, charset=Charset.ASCII)
    return attribute(name, np.array(value.encode(), f"S{len(value) + 1}"), datatype)


def chunked(chunk_shape: tuple[int, ...], count: int, nbytes: int) -> ChunkedLayout:
    table = ChunkTable(
        index=np.zeros((count, len(chunk_shape)), np.int64),
        address=np.arange(count, dtype=np.int64),
        nbytes=np.full(count, nbytes, np.int64),
        filter_mask=np.zeros(count, np.uint32),
    )
    return ChunkedLayout(chunk_shape=chunk_shape, index_kind=IndexKind.BTREE_V1, chunks=table)


def dataset(
    address: int,
    datatype: Datatype | None = None,
    extent: Dataspace | None = None,
    *attributes: Attribute,
    layout: Layout | None = None,
    filters: tuple[Filter, ...] = (),
    fill: FillValue = NO_FILL,
) -> Dataset:
    datatype = datatype or integer()
    extent = extent or space()
    return Dataset(
        address=address,
        datatype=datatype,
        dataspace=extent,
        layout=layout or ContiguousLayout(4096, extent.count * datatype.nbytes),
        filters=filters,
        fill=fill,
        attributes={each.name: each for each in attributes},
    )


def group(address: int, links: dict[str, int | Link], *attributes: Attribute) -> Group:
    made = {name: HardLink(name, link) if isinstance(link, int) else link for name, link in links.items()}
    return Group(address=address, links=made, attributes={each.name: each for each in attributes})


def file(root: Group, *objects: Object, problems: tuple[Problem, ...] = ()) -> H5File:
    """Return a file with these objects, and the first path of each, breadth first."""
    known: dict[int, Object] = {found.address: found for found in (root, *objects)}
    paths = {root.address: "/"}
    waiting: list[Object] = [root]
    while waiting:
        found = waiting.pop(0)
        for name, link in found.links.items() if isinstance(found, Group) else ():
            if isinstance(link, HardLink) and link.address not in paths:
                paths[link.address] = f"{paths[found.address].rstrip('/')}/{name}"
                if link.address in known:
                    waiting.append(known[link.address])
    nothing = cast(ContentReader, None)  # there are no bytes to read values from
    return H5File(url="ocean.nc", root=root, objects=known, paths=paths, contents=nothing, problems=problems)


def ocean() -> H5File:
    """Return a small file as netCDF-4 writes it, with one group, two links and one problem."""
    time = dataset(10, floating(8), space(240, unlimited=(0,)), *scale("time"), text("units", "days since 1970-01-01"))
    lat = dataset(11, floating(), space(180), *scale("This is a netCDF dimension but not a netCDF variable.       180"))
    temp = dataset(
        12,
        integer(2),
        space(240, 180, unlimited=(0,)),
        text("units", "K"),
        attribute("scale_factor", np.array(0.01, np.float32), floating()),
        attribute("_FillValue", np.array([-999], np.int16), integer(2)),
        dimension_list(10, 11),
        layout=chunked((1, 180), 200, 90),
        filters=(SHUFFLE, DEFLATE),
        fill=FillValue(kind=FillKind.USER_DEFINED, element=(-999).to_bytes(2, "little", signed=True)),
    )
    mask = dataset(13, integer(1, signed=False), space(4, 5))
    grid = group(14, {"mask": 13, "again": 12}, text("note", "a grid"))
    links: dict[str, int | Link] = {"time": 10, "lat": 11, "temp": 12, "grid": 14, "broken": 99}
    root = group(1, links, text("title", "Ocean, a test"))
    problem = Problem("/broken", "malformed", "object header has version 7 (byte 0x63)", "Compare its size.")
    return file(root, time, lat, temp, mask, grid, problems=(problem,))

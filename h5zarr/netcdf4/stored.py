"""Record how the file stores a variable, as far as a Zarr array does not show it."""

from __future__ import annotations

from h5zarr.hdf5.datatype import ByteOrder, Compound, Datatype, Enumeration, FixedPoint, FloatingPoint, Padding, String
from h5zarr.hdf5.model import ChunkedLayout
from h5zarr.netcdf4.element_forms import ElementForm, is_boolean
from h5zarr.netcdf4.named_file import NamedVariable
from h5zarr.tree import StoredEnumeration, StoredForm

_BLANK = " "


def interpret_stored(named: NamedVariable, form: ElementForm) -> StoredForm:
    """Return how the file stores a variable. `form` is the form of its elements that readers see."""
    dataset = named.dataset
    layout, datatype = dataset.layout, dataset.datatype
    return StoredForm(
        chunk_shape=layout.chunk_shape if isinstance(layout, ChunkedLayout) else None,
        filters=dataset.filters,
        number=_number(datatype, form),
        enumeration=_enumeration(datatype, named.type_name),
        members=_members(datatype, form),
        padding=_BLANK if isinstance(datatype, String) and datatype.padding is Padding.SPACE_PADDED else "",
        notes=named.notes,
    )


def _number(datatype: Datatype, form: ElementForm) -> str | None:
    """Return the smallest type in the file's byte order, if the form's type is larger or has another byte order.

    HDF5 chooses types for integers of unusual precision in the same way. Zarr has booleans of one byte only.
    """
    if is_boolean(datatype):
        return None if form.dtype.kind == "b" else "bool"
    if isinstance(datatype, Enumeration):
        datatype = datatype.base
    if form.is_plain or not isinstance(datatype, FixedPoint | FloatingPoint):
        return None
    if isinstance(datatype, FloatingPoint):
        return form.dtype.newbyteorder(">").str if datatype.order is ByteOrder.BIG else None
    width = next(width for width in (1, 2, 4, 8) if 8 * width >= datatype.precision)
    order = ">" if datatype.order is ByteOrder.BIG and width > 1 else "<"
    found = f"{order}{'i' if datatype.signed else 'u'}{width}"
    return None if found == form.dtype.str.replace("|", "<") else found


def _enumeration(datatype: Datatype, name: str | None) -> StoredEnumeration | None:
    if not isinstance(datatype, Enumeration) or name is None or is_boolean(datatype):
        return None
    return StoredEnumeration(name=name, members=datatype.members)


def _members(datatype: Datatype, form: ElementForm) -> tuple[str, ...]:
    """Return the names of a record's members if the form is a record with other names."""
    if not isinstance(datatype, Compound) or form.dtype.kind == "c":
        return ()
    names = tuple(member.name for member in datatype.members)
    return () if form.dtype.names == names else names

"""netCDF classic files (netCDF-3): CDF-1, CDF-2 and CDF-5."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .catalogue import sample
from .classic import Var, encode_classic
from .writing import numbers

CLASSIC_CODES = ("i1", "S1", "i2", "i4", "f4", "f8")
ALL_CODES = (*CLASSIC_CODES, "u1", "u2", "u4", "i8", "u8")


def values_for(code: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return values of a type, extremes among them."""
    count = int(np.prod(shape))
    if code == "S1":
        return np.frombuffer(bytes(65 + number % 26 for number in range(count)), "S1").reshape(shape)
    values = np.random.default_rng(count).integers(0, 100, count).astype(code)
    limits = np.finfo(code) if code[0] == "f" else np.iinfo(code)
    values[:2] = [limits.min, limits.max][: len(values[:2])]
    return values.reshape(shape)


def attributes_for(codes: tuple[str, ...]) -> dict[str, Any]:
    """Return attributes of every type: one value, several, none."""
    found: dict[str, Any] = {"title": "é in UTF-8", "empty": "", "latin": b"caf\xe9", "nulls": b"a\0b\0"}
    for code in codes:
        if code != "S1":
            found[f"one_{code}"] = values_for(code, (1,))
            found[f"three_{code}"] = values_for(code, (3,))
            found[f"none_{code}"] = np.empty(0, code)
    return found


@sample("classic_types_cdf1.nc", "CDF-1: all six types, fixed and with records; attributes of each", version=1)
@sample("classic_types_cdf2.nc", "CDF-2: all six types, fixed and with records; attributes of each", version=2)
@sample("classic_types_cdf5.nc", "CDF-5: all eleven types, fixed and with records; attributes of each", version=5)
def types(path: Path, version: int) -> None:
    codes = ALL_CODES if version == 5 else CLASSIC_CODES
    variables = [Var(name=f"scalar_{code}", code=code, dimensions=(), values=values_for(code, ())) for code in codes]
    for code in codes:
        variables += [
            Var(name=f"fixed_{code}", code=code, dimensions=("y", "x"), values=values_for(code, (2, 3))),
            Var(name=f"record_{code}", code=code, dimensions=("time", "x"), values=values_for(code, (4, 3))),
        ]
    dimensions = {"time": None, "y": 2, "x": 3}
    path.write_bytes(encode_classic(version, dimensions, variables, attributes_for(codes)))


@sample("classic_several_records.nc", "record variables of 1 to 8 bytes a record, padded to 4; a coordinate; fills")
def several_records(path: Path) -> None:
    count = 40
    time = {"units": "hours since 1970-01-01", "axis": "T"}
    wind = {"_FillValue": np.float32(-9), "scale_factor": np.float32(0.5)}
    variables = [
        Var(name="time", code="f8", dimensions=("time",), values=np.arange(count) / 2, attributes=time),
        Var(name="x", code="i4", dimensions=("x",), values=numbers((3,))),
        Var(name="flag", code="i1", dimensions=("time",), values=np.arange(count) % 100),
        Var(name="three_shorts", code="i2", dimensions=("time", "x"), values=numbers((count, 3)) % 1000),
        Var(name="wind", code="f4", dimensions=("time", "x"), values=numbers((count, 3)), attributes=wind),
        Var(name="wide", code="f4", dimensions=("time", "y"), values=numbers((count, 20))),
    ]
    path.write_bytes(encode_classic(1, {"time": None, "x": 3, "y": 20}, variables))


@sample("classic_lone_byte.nc", "a lone record variable of 3 bytes a record: no padding", code="i1", version=1)
@sample("classic_lone_char.nc", "a lone record variable of 3 letters a record: no padding", code="S1", version=2)
@sample("classic_lone_short.nc", "a lone record variable of 6 bytes a record: no padding", code="i2", version=1)
@sample("classic_lone_ushort_cdf5.nc", "a lone record variable of 6 bytes a record, CDF-5", code="u2", version=5)
def lone_record(path: Path, code: str, version: int) -> None:
    variables = [
        Var(name="fixed", code="i2", dimensions=("x",), values=[1, 2, 3]),
        Var(name="lone", code=code, dimensions=("time", "x"), values=values_for(code, (7, 3))),
    ]
    path.write_bytes(encode_classic(version, {"time": None, "x": 3}, variables))


@sample("classic_lone_large.nc", "a lone record variable whose records are too large to be taken for a run")
def lone_large(path: Path) -> None:
    variables = [Var(name="lone", code="f8", dimensions=("time", "x"), values=numbers((5, 200)))]
    path.write_bytes(encode_classic(2, {"time": None, "x": 200}, variables))


@sample("classic_no_records.nc", "record variables, but no record yet")
def no_records(path: Path) -> None:
    variables = [
        Var(name="time", code="f8", dimensions=("time",), values=np.empty(0)),
        Var(name="field", code="i2", dimensions=("time", "x"), values=np.empty((0, 3))),
        Var(name="fixed", code="i2", dimensions=("x",), values=[1, 2, 3]),
    ]
    path.write_bytes(encode_classic(1, {"time": None, "x": 3, "unused": 9}, variables))


@sample("classic_streaming.nc", "number of records left open (streaming), CDF-1", version=1)
@sample("classic_streaming_cdf5.nc", "number of records left open (streaming), CDF-5", version=5)
def streaming(path: Path, version: int) -> None:
    variables = [
        Var(name="time", code="f8", dimensions=("time",), values=np.arange(6.0)),
        Var(name="flag", code="i1", dimensions=("time", "x"), values=numbers((6, 3))),
    ]
    path.write_bytes(encode_classic(version, {"time": None, "x": 3}, variables, stated_records=-1))


@sample("classic_header_padding.nc", "10 kB of padding behind the header, variables aligned to 512 bytes")
def header_padding(path: Path) -> None:
    variables = [
        Var(name="a", code="i1", dimensions=("x",), values=[1, 2, 3]),
        Var(name="b", code="f8", dimensions=("x",), values=[1, 2, 3]),
        Var(name="r", code="i2", dimensions=("time", "x"), values=numbers((4, 3))),
        Var(name="s", code="i4", dimensions=("time",), values=numbers((4,))),
    ]
    content = encode_classic(2, {"time": None, "x": 3}, variables, header_padding=10_000, alignment=512)
    path.write_bytes(content)


@sample("classic_large_header.nc", "a header of 8 kB, which takes a second round: many variables, long attributes")
def large_header(path: Path) -> None:
    attributes = {"long_name": "a variable among many others, " * 5, "number": np.arange(20)}
    variables = [
        Var(name=f"variable_{number:03}", code="i2", dimensions=("x",), values=[number] * 3, attributes=attributes)
        for number in range(14)
    ]
    path.write_bytes(encode_classic(1, {"x": 3}, variables, {"history": "something was done; " * 100}))


@sample("classic_unsigned.nc", "_Unsigned bytes with _FillValue, letters with _FillValue, _FillValue of another type")
def unsigned(path: Path) -> None:
    as_unsigned = {"_Unsigned": "true", "_FillValue": np.int8(-1)}
    letter, double = {"_FillValue": "*"}, {"_FillValue": np.float64(2)}
    variables = [
        Var(name="bytes", code="i1", dimensions=("x",), values=[-1, 5, -128], attributes=as_unsigned),
        Var(name="letters", code="S1", dimensions=("x", "y"), values=values_for("S1", (3, 4)), attributes=letter),
        Var(name="other_type", code="i2", dimensions=("x",), values=[1, 2, 3], attributes=double),
        Var(name="étage", code="f4", dimensions=("x",), values=[1, 2, 3]),
    ]
    path.write_bytes(encode_classic(1, {"x": 3, "y": 4}, variables))


@sample("classic_by_netcdf.nc", "CDF-2 as the netCDF library writes it: two records, values that were never written")
def by_netcdf(path: Path) -> None:
    from .writing import optional_module

    netCDF4 = optional_module("netCDF4")
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.createDimension("time", None)
        file.createDimension("x", 5)
        file.createVariable("never_written", "f4", ("time", "x"))
        file.createVariable("written", "i2", ("time", "x"))[:2] = numbers((2, 5))
        file.createVariable("time", "f8", ("time",))[:] = [1, 2]
        file.title = "by the library"

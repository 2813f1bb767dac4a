"""netCDF-4 files, as the netCDF library writes them, and the dimension scales they are built on."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np

from .catalogue import sample
from .writing import new_file, numbers, optional_module

MONTHS = 18


@sample("ocean.nc", "a realistic netCDF-4 file: packed sea surface temperature and currents on time, lat, lon")
def ocean(path: Path) -> None:
    netCDF4 = optional_module("netCDF4")
    with netCDF4.Dataset(path, "w") as file:
        file.Conventions = "CF-1.11"
        file.title = "Sea surface of an invented ocean"
        file.institution = "none; made by sample_data/make_sample_data.py"
        file.source = "sines, cosines and seeded noise"
        file.createDimension("time", None)
        for axis, values, units in (
            ("lat", np.arange(-58.5, 60, 3), "degrees_north"),
            ("lon", np.arange(1.5, 360, 3), "degrees_east"),
        ):
            file.createDimension(axis, values.size)
            variable = file.createVariable(axis, "f4", (axis,))
            variable[:] = values
            variable.units = units
            variable.standard_name = {"lat": "latitude", "lon": "longitude"}[axis]
        time = file.createVariable("time", "f8", ("time",), chunksizes=(MONTHS,))
        time.units = "days since 2000-01-01 00:00:00"
        time.calendar = "standard"
        time.standard_name = "time"
        time[:] = np.arange(MONTHS) * 30.5
        write_ocean_fields(file)


def write_ocean_fields(file) -> None:
    """Write temperature, packed in 16 bits and masked on land, and the two components of the current."""
    random = np.random.default_rng(0)
    month, lat, lon = np.meshgrid(np.arange(MONTHS), file["lat"][:], file["lon"][:], indexing="ij")
    land = np.cos(np.radians(lon)) * np.cos(np.radians(2 * lat)) + 0.3 * np.sin(np.radians(5 * lon)) > 0.7
    temperature = (
        27 * np.cos(np.radians(lat))
        + 3 * np.sin(month / 12 * 2 * np.pi) * np.sign(lat)
        + random.normal(0, 0.2, lat.shape)
    )

    def field(name, dtype, **filters):
        return file.createVariable(
            name, dtype, ("time", "lat", "lon"), chunksizes=(4, 20, 60), zlib=True, shuffle=True, **filters
        )

    sst = field("sst", "i2", fill_value=np.int16(-32768))
    sst.scale_factor = np.float32(0.01)
    sst.add_offset = np.float32(10)
    sst.units = "degree_Celsius"
    sst.standard_name = "sea_surface_temperature"
    sst[:] = np.ma.masked_array(temperature, land)

    for name, direction, angle in (("u", "eastward", np.cos), ("v", "northward", np.sin)):
        current = field(name, "f4", fill_value=np.float32(9.96921e36), least_significant_digit=2)
        current.units = "m s-1"
        current.standard_name = f"{direction}_sea_water_velocity"
        current[:] = np.ma.masked_array(angle(np.radians(3 * lat + lon)), land)


@sample("sst_2024-01.nc", "a series: daily temperature in January", month=1, days=31)
@sample("sst_2024-02.nc", "a series: February, which counts time from its own first day", month=2, days=29)
@sample("sst_2024-03.nc", "a series: March", month=3, days=31)
def series(path: Path, *, month: int, days: int) -> None:
    netCDF4 = optional_module("netCDF4")
    with netCDF4.Dataset(path, "w") as file:
        file.Conventions = "CF-1.11"
        file.title = "Daily sea surface temperature of an invented ocean"
        file.createDimension("time", None)
        for axis, values, units in (
            ("lat", np.arange(-45, 60, 30.0), "degrees_north"),
            ("lon", np.arange(15, 360, 30.0), "degrees_east"),
        ):
            file.createDimension(axis, values.size)
            variable = file.createVariable(axis, "f4", (axis,))
            variable[:] = values
            variable.units = units
        time = file.createVariable("time", "i4", ("time",), chunksizes=(32,))
        time.units = f"days since 2024-{month:02}-01"
        time.calendar = "standard"
        time[:] = np.arange(days)
        shape = ("time", "lat", "lon")
        sst = file.createVariable(
            "sst", "i2", shape, chunksizes=(8, 4, 12), zlib=True, shuffle=True, fill_value=np.int16(-32768)
        )
        sst.scale_factor = 0.01
        sst.units = "degree_Celsius"
        season = np.cos(2 * np.pi * (30.4 * (month - 1) + np.arange(days)[:, None, None]) / 366)
        lat, lon = file["lat"][:][:, None], file["lon"][:]
        sst[:] = 27 * np.cos(np.radians(lat)) - 3 * season * np.sign(lat) + 0.5 * np.sin(np.radians(lon))


@sample(
    "netcdf4_groups.nc", "netCDF-4 groups: dimensions of the parent, a dimension without variable, the same name twice"
)
def groups(path: Path) -> None:
    netCDF4 = optional_module("netCDF4")
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        file.createDimension("no_variable", 2)
        file.createVariable("x", "f8", ("x",))[:] = [1, 2, 3]
        group = file.createGroup("group")
        group.createDimension("y", 2)
        group.createDimension("x", 4)
        group.createVariable("of_the_parent", "f4", ("no_variable",))[:] = [1, 2]
        group.createVariable("of_the_group", "i4", ("y", "x"))[:] = numbers((2, 4))
        inner = group.createGroup("inner")
        inner.createVariable("of_the_middle", "i4", ("y",))[:] = [7, 8]


@sample("netcdf4_unlimited.nc", "netCDF-4: two unlimited dimensions, variables of unequal length, default fill values")
def unlimited(path: Path) -> None:
    netCDF4 = optional_module("netCDF4")
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("station", None)
        file.createDimension("y", 3)
        time = file.createVariable("time", "f8", ("time",), chunksizes=(4,))
        time.units = "hours since 1970-01-01"
        time[:] = [0, 1, 2, 3]
        file.createVariable("one_record", "f4", ("time", "y"), chunksizes=(1, 3))[0] = [1, 2, 3]
        file.createVariable("last_record", "i2", ("time", "y"), chunksizes=(1, 3), zlib=True)[3] = [4, 5, 6]
        file.createVariable("two_unlimited", "f4", ("time", "station"), chunksizes=(1, 2))[:2, :3] = numbers((2, 3))


@sample(
    "netcdf4_types.nc", "netCDF-4 types: strings, characters, unsigned, 64 bits, compound, enum, sequences; fill off"
)
def types(path: Path) -> None:
    netCDF4 = optional_module("netCDF4")
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        file.createDimension("letter", 5)
        file.createVariable("names", str, ("x",))[:] = np.array(["ab", "é", ""], dtype=object)
        file.createVariable("letters", "S1", ("x", "letter"))[:] = netCDF4.stringtochar(
            np.array(["abcde", "fg", "h"], "S5")
        )
        for code in ("i1", "u1", "u2", "u4", "i8", "u8"):
            file.createVariable(f"number_{code}", code, ("x",))[:] = [0, 1, 2]
        file.createVariable("big_endian", ">f4", ("x",), endian="big")[:] = [0, 1, 2]
        file.createVariable("no_fill", "f4", ("x",), fill_value=False)[:] = [0, 1, 2]
        file.createVariable("scalar", "f8", ())[...] = 4.5
        point = file.createCompoundType(np.dtype([("x", "f4"), ("n", "i2")]), "point")
        file.createVariable("points", point, ("x",))[:] = np.array([(1, 2), (3, 4), (5, 6)], point.dtype)
        cloud = file.createEnumType("u1", "cloud", {"clear": 0, "cumulus": 1, "missing": 255})
        file.createVariable("clouds", cloud, ("x",), fill_value=255)[:2] = [0, 1]
        ragged = file.createVariable("ragged", file.createVLType("i4", "ints"), ("x",))
        for row in range(3):
            ragged[row] = numbers((row + 1,))


@sample("netcdf4_coordinates.nc", "netCDF-4: two-dimensional coordinates, one named like a dimension (_nc4_non_coord_)")
def coordinates(path: Path) -> None:
    netCDF4 = optional_module("netCDF4")
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("y", 2)
        file.createDimension("x", 3)
        file.createVariable("y", "f8", ("y", "x"))[:] = numbers((2, 3))
        file.createVariable("x", "f8", ("y",))[:] = [10, 20]
        data = file.createVariable("data", "i4", ("y", "x"))
        data.coordinates = "x y"
        data[:] = numbers((2, 3))


@sample("netcdf4_classic_model.nc", "netCDF-4 classic model, with fletcher32 and a contiguous variable")
def classic_model(path: Path) -> None:
    netCDF4 = optional_module("netCDF4")
    with netCDF4.Dataset(path, "w", format="NETCDF4_CLASSIC") as file:
        file.createDimension("time", None)
        file.createDimension("x", 4)
        file.createVariable("record", "f4", ("time", "x"), chunksizes=(2, 4), fletcher32=True)[:] = numbers((3, 4))
        file.createVariable("fixed", "i2", ("x",), contiguous=True)[:] = numbers((4,))


@sample("dimension_scales.h5", "dimension scales made by h5py: named, two on one axis, one on two axes, labels only")
def dimension_scales(path: Path) -> None:
    with new_file(path) as file:
        file["lat"], file["lat_index"], file["lon"] = np.arange(3.0), numbers((3,)), np.arange(4.0)
        file["lat"].make_scale("latitude")
        file["lat_index"].make_scale("index of latitude")
        file["lon"].make_scale()
        field = file.create_dataset("field", data=numbers((3, 4)))
        field.dims[0].attach_scale(file["lat"])
        field.dims[0].attach_scale(file["lat_index"])
        field.dims[1].attach_scale(file["lon"])
        covariance = file.create_dataset("covariance", data=np.eye(3))
        for axis in covariance.dims:
            axis.attach_scale(file["lat"])
        labelled = file.create_dataset("labelled", data=numbers((2, 2)))
        labelled.dims[0].label, labelled.dims[1].label = "row", "column"
        group: h5py.Group = file.create_group("group")
        group.create_dataset("profile", data=numbers((3,))).dims[0].attach_scale(file["lat"])

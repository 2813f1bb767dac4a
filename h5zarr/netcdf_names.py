"""Names of attributes that HDF5, netCDF and NCZarr use internally, and hide from users."""

from __future__ import annotations

NUMBER = "_Netcdf4Dimid"
NUMBERS = "_Netcdf4Coordinates"

OF_SCALES = frozenset({"CLASS", "NAME"})
OF_NUMBERS = frozenset({NUMBER, NUMBERS})
OF_REFERENCES = frozenset({"DIMENSION_LIST", "REFERENCE_LIST"})
# NCZarr and xarray store shapes, filters and dimensions in these. In references of h5zarr, readers would trust them.
OF_ZARR = frozenset({"_ARRAY_DIMENSIONS", "_Codecs", "_nczarr_array", "_nczarr_attr", "_nczarr_group"})
OF_ZARR_ROOT = frozenset({"_nczarr_superblock"})
WRITTEN_ON_ROOT = frozenset({"_NCProperties", "_nc3_strict"})
OF_ROOT = WRITTEN_ON_ROOT | {"_Format", "_IsNetcdf4", "_SuperblockVersion"}

ON_DATASETS = OF_SCALES | OF_NUMBERS | OF_REFERENCES | OF_ZARR
ON_GROUPS = OF_ROOT | OF_ZARR | OF_ZARR_ROOT
HIDDEN = ON_DATASETS | ON_GROUPS
"""Attributes that the netCDF library hides by name, on any object of an HDF5 file."""

"""References as xarray's netCDF engine would show the file: pure parts, and a data store that puts them together."""

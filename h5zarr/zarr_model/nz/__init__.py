"""NZ-1.0, the netCDF-Zarr convention: its declaration and its rules."""

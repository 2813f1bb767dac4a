"""Interpret an HDF5 file as netCDF: its variables, the names of their dimensions, and their values."""

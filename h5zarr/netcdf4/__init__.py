"""What an HDF5 file means to netCDF: which variables it has, what their dimensions are called, and what they hold."""

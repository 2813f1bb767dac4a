"""The xarray engine `h5zarr`: shows references and files as xarray's netCDF engine shows the files."""

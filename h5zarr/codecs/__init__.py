"""Codecs for the HDF5 filters that Zarr lacks, for Zarr v3 and, as numcodecs, for Zarr v2.

They are thin: `h5zarr.filters` does the work. Zarr and numcodecs find them by the entry points of the package, with the
same name and configuration in both: `h5zarr.` and the name of the filter.
"""

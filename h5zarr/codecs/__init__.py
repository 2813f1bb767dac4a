"""h5zarr's own Zarr codecs, for Zarr v3 and, through numcodecs, for Zarr v2.

Zarr and numcodecs find them by the entry points of the package. `h5zarr.filter` decodes every HDF5 filter that Zarr and
numcodecs lack, and `h5zarr.elements` converts elements that numpy has no type for.
"""

"""What h5zarr knows about Zarr: data types, fill values, codecs, chunk grids, keys, names, both versions, and NZ."""

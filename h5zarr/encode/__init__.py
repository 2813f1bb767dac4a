"""Encode a `Tree`, the content of a file, as a `Hierarchy` of Zarr groups and arrays."""

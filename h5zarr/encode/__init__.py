"""From what a file holds to what Zarr is told about it."""

"""Verifying: what Zarr reads through references, compared with what other libraries read from the files themselves."""

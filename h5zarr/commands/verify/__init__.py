"""The verify command: compare what Zarr reads through references with what other libraries read from the files."""

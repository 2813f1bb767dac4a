"""HDF5 filters, undone and applied: bytes in, bytes out, one module for each filter.

Every module has `decode(content, values, nbytes)`, where `values` is the filter's client data and `nbytes` the size
of the whole chunk before any filter, from which `bounds.most` says how much a filter may give. Filters that Zarr has
no codec for also have `Settings`, the client data by name, and `encode`. Compiled libraries are imported where they
are used.
"""

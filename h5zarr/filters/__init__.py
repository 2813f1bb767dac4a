"""HDF5 filters, decoded and encoded: bytes in, bytes out, one module per filter.

`table.py` lists the filters and says which functions a module may have. Modules import compiled libraries inside their
functions, when they are needed.
"""

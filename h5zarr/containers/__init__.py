"""Containers of references: JSON, Parquet and Icechunk, each in a folder, behind one registry."""

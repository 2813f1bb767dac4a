"""Summarise the catalog of an index."""

"""Translate a file: open, scan, interpret, select, encode, write."""

"""Icechunk: a `Hierarchy` as one snapshot of a versioned repository."""

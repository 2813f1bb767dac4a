"""Icechunk: a `Hierarchy` written into a versioned repository, as one snapshot."""

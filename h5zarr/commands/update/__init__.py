"""Bring a cube up to date with its archive."""

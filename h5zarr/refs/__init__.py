"""Containers: a `Hierarchy` written as references that Zarr readers open, one module for each form."""

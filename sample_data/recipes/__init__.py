"""Recipes for the sample files, a module per part of the HDF5 format. Importing this fills `catalogue.SAMPLES`."""

from . import (
    chunk_indexes,
    containers,
    datatypes,
    fill_values,
    filters,
    groups,
    layouts,
    netcdf3,
    netcdf4,
    object_headers,
    texts_and_sequences,
)
from .catalogue import SAMPLES, Sample, Unavailable

SECTIONS = (
    netcdf4,
    netcdf3,
    containers,
    groups,
    object_headers,
    datatypes,
    texts_and_sequences,
    fill_values,
    layouts,
    chunk_indexes,
    filters,
)

__all__ = ["SAMPLES", "SECTIONS", "Sample", "Unavailable"]

"""All rules, and their specifications."""

from __future__ import annotations

from h5zarr.commands.validate import (
    chunk_rules,
    missing_rules,
    nz_rules,
    reference_rules,
    xarray_rules,
    zarr2_rules,
    zarr3_arrays,
    zarr3_codecs,
    zarr3_nodes,
)
from h5zarr.commands.validate.rules import Rule

NZ = "nz"
SPECIFICATIONS = {
    "refs": ("References", "https://fsspec.github.io/kerchunk/spec.html"),
    "zarr3": ("Zarr version 3", "https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html"),
    "zarr2": ("Zarr version 2", "https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html"),
    "fill": ("The `_FillValue` attribute", "https://github.com/zarr-developers/zarr-extensions"),
    "xarray": ("Xarray-Zarr", "https://docs.xarray.dev/en/latest/internals/zarr-encoding-spec.html"),
    NZ: ("NZ-1.0", "https://github.com/zarr-conventions/nz"),
}
_ALL = (
    *reference_rules.RULES,
    *chunk_rules.RULES,
    *zarr3_nodes.RULES,
    *zarr3_arrays.RULES,
    *zarr3_codecs.RULES,
    *zarr2_rules.RULES,
    *missing_rules.RULES,
    *xarray_rules.RULES,
    *nz_rules.RULES,
)
RULES: dict[str, Rule] = {rule.id: rule for family in SPECIFICATIONS for rule in _ALL if rule.family == family}

"""Decode the parts of a joined variable as xarray would decode them in a file that has only this part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from xarray.conventions import decode_cf_variables
from xarray.core.variable import Variable

from h5zarr.engine.joined_arrays import Decode

Variables: TypeAlias = Mapping[str, Variable]
_TIMES = ("units", "calendar")


@dataclass
class PartDecoding:
    """Decodes with the `options` of the user, among the other `variables` of the dataset, and `others` that have parts.

    Times usually stay numbers: all parts have the same units, and xarray decodes the whole variable later. But it shows
    missing times of some calendars as dates, so the parts of an incomplete variable are decoded before they are joined.
    `decoded` has the names of these variables.
    """

    options: Mapping[str, Any]
    variables: Variables
    others: Variables = field(default_factory=dict)
    decoded: set[str] = field(default_factory=set)

    def find(self, name: str, is_complete: bool) -> Decode:
        """Return the function that decodes parts of a variable."""
        return partial(self._decode, name, is_complete)

    def owners(self) -> dict[str, dict[str, Any]]:
        """Return the attributes by which xarray would decode variables a second time, by the variable that has them."""
        return {
            owner: {"bounds": one.attrs["bounds"]}
            for owner, one in self.variables.items()
            if str(one.attrs.get("bounds")) in self.decoded
        }

    def _decode(self, name: str, is_complete: bool, variable: Variable) -> Variable:
        times = {} if is_complete else self._times(name, variable)
        undecoded = {"decode_coords": False, "decode_timedelta": False}
        if times and self.options["decode_times"]:
            self.decoded.add(name)
            variable = variable.copy(deep=False)
            variable.attrs = {**variable.attrs, **times}
        else:
            undecoded["decode_times"] = False
        # A dimension of characters becomes part of the text, unless other variables have this dimension.
        known = {**self.others, **self.variables}
        others = {other: _one_element(one) for other, one in known.items() if other != name}
        options = {**self.options, **undecoded, "drop_variables": others.keys()}
        return decode_cf_variables({**others, name: variable}, {}, **options)[0][name]

    def _times(self, name: str, variable: Variable) -> dict[str, Any]:
        """Return the units of times; bounds have those of the variable that they belong to. Empty for other values."""
        known = (*self.variables.values(), *self.others.values())
        owners = [one for one in known if str(one.attrs.get("bounds")) == name]
        for attributes in (variable.attrs, *[one.attrs for one in owners]):
            if isinstance(units := attributes.get("units"), str) and "since" in units:
                return {name: attributes[name] for name in _TIMES if name in attributes}
        return {}


def _one_element(variable: Variable) -> Variable:
    """Return a variable with the same dimensions and type, which reads nothing."""
    return Variable(variable.dims, np.zeros((1,) * variable.ndim, variable.dtype))

"""Units of variables in a form in which different spellings of the same unit are equal.

Nothing is converted: only what UDUNITS defines as the same unit is equal. Spec: CF 1.11, 3.1 and 4; UDUNITS 2, grammar.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import lru_cache

_FACTOR = re.compile(r"([/.*\s]*)([A-Za-zµ°%_]+|1)(?:(?:\*\*|\^)?([+-]?[0-9]+))?")
_SYNONYMS = {
    "degC": ("Celsius", "celsius", "degree_Celsius", "degrees_Celsius", "degree_C", "degrees_C", "deg_C", "°C"),
    "K": ("kelvin", "Kelvin", "kelvins", "degK", "degree_Kelvin", "degrees_Kelvin"),
    "degrees_north": ("degree_north", "degree_N", "degrees_N", "degreeN", "degreesN"),
    "degrees_east": ("degree_east", "degree_E", "degrees_E", "degreeE", "degreesE"),
    "degree": ("degrees", "deg", "arc_degree", "°"),
    "m": ("meter", "meters", "metre", "metres"),
    "s": ("second", "seconds", "sec"),
    "Pa": ("pascal", "pascals", "Pascal"),
    "%": ("percent",),
}
_USUAL = {other: usual for usual, others in _SYNONYMS.items() for other in others}


@lru_cache(maxsize=1024)
def canonical_units(text: str) -> Hashable:
    """Return units in a form that can be compared: `m s-1`, `m/s` and `m s**-1` are equal.

    Text that is not a product of units stands for itself. Factors do not cancel: mol/mol is not kg/kg.
    """
    text = text.strip()
    if text in ("", "1"):
        return ()
    if text in _SYNONYMS["s"]:
        return text  # xarray shows seconds as durations, and s as numbers
    found: list[tuple[str, int]] = []
    end = 0
    for match in _FACTOR.finditer(text):
        between, name, exponent = match.groups()
        if match.start() != end or between.count("/") > 1 or between.strip() not in ("", "/", ".", "*"):
            return text
        if not between and found:
            return text
        end = match.end()
        sign = -1 if "/" in between else 1
        if name != "1":
            found.append((_USUAL.get(name, name), sign * int(exponent or 1)))
        elif exponent:
            return text
    return tuple(sorted(found)) if end == len(text) else text

"""Find members of a group that are alike, so that a few can represent them all."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping

from h5zarr.commands.inspect.part import is_alias, join
from h5zarr.hdf5.model import Dataset, Group, H5File, HardLink, Object

DIGITS = re.compile(r"[0-9]+")


def group_forms(file: H5File) -> dict[str, int]:
    """Return a number for each group. Groups with the same number have members of the same names and types,
    recursively.
    """
    forms: dict[str, int] = {}
    numbers: dict[Hashable, int] = {}
    for path, found in reversed(list(file.walk())):
        form: Hashable = _form(found)
        if isinstance(found, Group):
            inside = (
                forms.get(join(path, name), -1)
                for name, link in found.links.items()
                if isinstance(link, HardLink) and not is_alias(file, join(path, name), link)
            )
            form = (frozenset(found.links), tuple(sorted(found.attributes)), tuple(inside))
        forms[path] = numbers.setdefault(form, len(numbers))
    return forms


def families(datasets: Mapping[str, Dataset]) -> dict[str, tuple[str, Hashable]]:
    """Return the family of each dataset: its name without digits, its type and its rank."""
    return {name: (DIGITS.sub("#", name), _form(dataset)) for name, dataset in datasets.items()}


def _form(found: Object) -> Hashable:
    if isinstance(found, Dataset):
        return (found.datatype, found.dataspace.rank)
    return type(found).__name__

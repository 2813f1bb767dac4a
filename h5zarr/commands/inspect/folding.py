"""How listings stay short: similar members and groups are folded, long pages are abbreviated."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from h5zarr.commands.inspect.dimensions import Dimension
from h5zarr.commands.inspect.view import View, column_width, padded
from h5zarr.display import ELLIPSIS, counted, readable, shortened

CROWD = 20  # in a group with more members of a kind, similar ones are folded
SHOWN = 10  # of those that are similar
ALIKE_GROUPS = 5  # this many groups with the same members are folded to the first
MOST = 100  # members of a kind, similar or not
MANY_LINES = 200  # a longer page only says what each variable is
NAME_COLUMN = 32


def abbreviated(lines: Callable[[bool], list[str]], view: View) -> list[str]:
    """Return the lines of a page. `lines` returns them in full, or in brief for a page that is too long."""
    whole = lines(False)
    if view.everything or not view.attributes or len(whole) <= MANY_LINES:
        return whole
    brief = lines(True)
    if len(brief) == len(whole):
        return whole
    return [*brief, "", f"Attributes are shortened ({view.hint} shows everything)."]


def section(title: str, lines: Sequence[str]) -> list[str]:
    """Return the lines of a section with its title; nothing if it is empty."""
    return [f"  {title}", *lines] if lines else []


def shown_count(count: int, view: View) -> int:
    """Return how many of `count` members of one kind are shown."""
    return count if view.everything or count <= CROWD else SHOWN


def more_lines(view: View, count: int, thing: str) -> list[str]:
    """Return a line with the number of members that are not shown; nothing if all are."""
    return [f"    {ELLIPSIS} {counted(count, f'more {thing}')} (use {view.hint})"] if count > 0 else []


def dimension_lines(dimensions: Sequence[Dimension], view: View) -> list[str]:
    """Return a line for each dimension of a group, with its length."""
    count = shown_count(len(dimensions), view)
    names = [readable(dimension.name) for dimension in dimensions[:count]]
    column = column_width(names, NAME_COLUMN)
    lines = []
    for name, dimension in zip(names, dimensions, strict=False):
        label = f'  "{readable(dimension.label)}"' if dimension.label else ""
        limit = " (UNLIMITED)" if dimension.unlimited else ""
        lines.append(f"    {name}{padded(name, column)} = {dimension.length}{limit}{label}")
    return lines + more_lines(view, len(dimensions) - count, "dimension")


def fold_members(family: Mapping[str, Hashable], view: View, thing: str) -> tuple[list[str], dict[str, str]]:
    """Return the names of the members to show, and lines for the others, by the name of the member they follow.

    `family` has the members of a group; those of the same family are similar. `thing` is what one is called.
    """
    if view.everything or len(family) <= CROWD:
        return list(family), {}
    alike: dict[Hashable, list[str]] = {}
    for name in family:
        alike.setdefault(family[name], []).append(name)
    kept: list[str] = []
    after: dict[str, str] = {}
    for name in family:
        names = alike[family[name]]
        if name in names[:SHOWN]:
            kept.append(name)
        if len(names) > SHOWN:
            more = counted(len(names) - SHOWN, f"more {thing}")
            after[names[SHOWN - 1]] = f"{ELLIPSIS} {more} like these (use {view.hint})"
    if len(kept) > MOST:
        more = counted(len(kept) - MOST, f"more {thing}")
        after[kept[MOST - 1]] = f"{ELLIPSIS} {more} (use {view.hint})"
    return kept[:MOST], after


def fold_groups(path: str, places: Sequence[str], forms: Mapping[str, int], view: View) -> list[tuple[str, str | None]]:
    """Return the subgroups to show, and lines that represent the others, each after the group it resembles.

    The line of a group that is shown is None. Groups of the same form are alike.
    """
    alike: dict[int, list[str]] = {}
    for number, place in enumerate(places):
        alike.setdefault(forms.get(place, -1 - number), []).append(place)
    folded = {first: others for first, *others in alike.values() if len(others) + 1 >= ALIKE_GROUPS}
    hidden = {place for others in folded.values() for place in others}
    found: list[tuple[str, str | None]] = []
    for place in places:
        if place not in hidden:
            found.append((place, None))
        if place in folded:
            found.append((place, _folded_groups(place, folded[place], view)))
    if len(found) > MOST and not view.everything:
        rest = counted(len(found) - MOST, "more group")
        found[MOST:] = [(path, f"  {ELLIPSIS} {rest} in {readable(path)} (use {view.hint})")]
    return found


def _folded_groups(first: str, others: Sequence[str], view: View) -> str:
    names = shortened(", ".join(readable(place.rpartition("/")[2]) for place in others), view.width // 2)
    more = counted(len(others), "more group")
    return f"  {ELLIPSIS} {more} like {readable(first)} (use {view.hint}): {names}"

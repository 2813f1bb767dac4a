"""Targets of links."""

from __future__ import annotations

from h5zarr.display import readable
from h5zarr.hdf5.model import ExternalLink, Group, H5File, HardLink, Link, Object, SoftLink


def link_text(file: H5File, path: str, link: Link) -> str:
    """Return the target of a link in the group at `path`."""
    match link:
        case SoftLink(_, target):
            return readable(target) + ("" if resolves(file, path, target) else " (dangling)")
        case ExternalLink(_, name, target):
            return f"{readable(name)}:{readable(target)} (external)"
        case HardLink(_, address):
            if address in file.objects:
                return f"{readable(file.paths[address])} (alias)"
            return "(could not be read, see problems)"
        case _:
            return f"(user-defined link of class {link.link_class})"


def resolves(file: H5File, path: str, target: str) -> bool:
    """Return whether a soft link leads to an object, following at most 40 further links."""
    names = [name for name in f"{'' if target.startswith('/') else path}/{target}".split("/") if name not in ("", ".")]
    names.reverse()
    place: Object | None = file.root
    for _ in range(40 + len(names)):
        if not names or place is None:
            return place is not None
        link = place.links.get(names.pop()) if isinstance(place, Group) else None
        if isinstance(link, HardLink):
            place = file.objects.get(link.address)
        elif isinstance(link, SoftLink):
            names.extend(name for name in reversed(link.target.split("/")) if name not in ("", "."))
            if link.target.startswith("/"):
                place = file.root
        else:
            return link is not None  # external and user-defined links lead outside the known objects
    return False

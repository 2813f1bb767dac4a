"""The part of a file that a scan reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scope:
    """A group of a file. `names` lead to it from where the scan is, and if it `is_deep`, all groups below belong to it.

    Datasets of the groups on the way belong to it, too, because they may be dimensions of the group. If not
    `is_entered`, only datasets are read: this is how the members of these groups are visited.
    """

    names: tuple[str, ...] = ()
    is_deep: bool = True
    is_entered: bool = True

    @classmethod
    def of(cls, group: str, *, is_deep: bool = True) -> Scope:
        """Return the scope of the group at a path."""
        return cls(tuple(name for name in group.split("/") if name), is_deep)

    @property
    def path(self) -> str:
        """The path of the group."""
        return "/" + "/".join(self.names)

    def below(self, name: str) -> Scope:
        """Return what to read of a member of the group that the scan has reached."""
        if self.names:
            return Scope(self.names[1:], self.is_deep) if name == self.names[0] else _BESIDE
        return self if self.is_deep else _BESIDE


WHOLE = Scope()
_BESIDE = Scope(is_deep=False, is_entered=False)

"""How much to show, and how to set it in columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the reader asked for. `pattern` and `depth` as in `select`; `everything` leaves nothing out."""

    everything: bool = False
    attributes: bool = True
    pattern: str | None = None
    depth: int | None = None
    width: int = 100
    colour: bool = False

    def bold(self, text: str) -> str:
        return f"{BOLD}{text}{PLAIN}" if self.colour and text else text

    def limit(self, count: int) -> int | None:
        """Return `count`, or None for no limit when everything is asked for."""
        return None if self.everything else count


def column_width(texts: Iterable[str], most: int) -> int:
    """Return the width of a column: that of the longest text of at most `most` letters. Longer ones stick out."""
    return max((len(text) for text in texts if len(text) <= most), default=0)


def padded(text: str, width: int) -> str:
    """Return the blanks that fill a column of `width` behind `text`."""
    return " " * max(width - len(text), 0)

"""How much to show, and how to align columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The reader's choices. `pattern` and `depth` as in `select`; `everything` omits nothing."""

    everything: bool = False
    attributes: bool = True
    pattern: str | None = None
    depth: int | None = None
    width: int = 100
    colour: bool = False
    hint: str = "all=True"
    """How to request everything, in the reader's terms."""

    def bold(self, text: str) -> str:
        return f"{BOLD}{text}{PLAIN}" if self.colour and text else text

    def limit(self, count: int) -> int | None:
        """Return `count`, or None (no limit) if everything is requested."""
        return None if self.everything else count


def column_width(texts: Iterable[str], most: int) -> int:
    """Return the width of a column: that of its longest text up to `most` characters. Longer texts overflow."""
    return max((len(text) for text in texts if len(text) <= most), default=0)


def padded(text: str, width: int) -> str:
    """Return the spaces that pad `text` to `width`."""
    return " " * max(width - len(text), 0)

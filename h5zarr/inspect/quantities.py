"""Numbers for people."""

from __future__ import annotations

UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


def counted(count: int, thing: str) -> str:
    """Return "1 group", "2,030 groups"."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def size(nbytes: int) -> str:
    """Return a number of bytes with three digits, in powers of 1000: "812 bytes", "1.24 MB", "401 MB"."""
    if nbytes < 1000:
        return counted(nbytes, "byte")
    amount, power = float(nbytes), 0
    while amount >= 999.5 and power < len(UNITS) - 1:
        amount, power = amount / 1000, power + 1
    digits = 2 if amount < 9.995 else 1 if amount < 99.95 else 0
    return f"{amount:.{digits}f} {UNITS[power]}"

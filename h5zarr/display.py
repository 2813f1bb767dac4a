"""Text and numbers for display. Text from a file can neither move the cursor nor break a line."""

from __future__ import annotations

ELLIPSIS = "…"
_PLACE_LIMIT = 120
COMMON = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def readable(text: str) -> str:
    """Return `text` with control characters and lone surrogates escaped. All other characters are unchanged."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escape(letter) for letter in text)


def quoted(text: str) -> str:
    """Return `text` in double quotes, escaped as in C and CDL."""
    return '"' + readable(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def text_of(content: bytes) -> str:
    """Decode bytes as UTF-8, or as Latin-1 if they are not valid UTF-8. Trailing NULs are removed."""
    content = content.rstrip(b"\0")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def shortened(text: str, limit: int | None) -> str:
    """Return `text`, truncated to `limit` characters. A truncated text ends with an ellipsis."""
    if limit is None or len(text) <= limit:
        return text
    return text[: max(limit - 1, 1)] + ELLIPSIS


def summary_repr(name: str, place: str, *facts: str) -> str:
    """Return a short `repr`: "<h5zarr.NAME of PLACE: FACTS>". Only the end of a long place is shown."""
    shown = readable(place)
    shown = shown if len(shown) <= _PLACE_LIMIT else ELLIPSIS + shown[1 - _PLACE_LIMIT :]
    return f"<h5zarr.{name}{f' of {shown}' if shown else ''}: {', '.join(facts)}>"


def _escape(letter: str) -> str:
    if letter == "\u00a0":
        return letter
    if letter in COMMON:
        return COMMON[letter]
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


def counted(count: int, thing: str) -> str:
    """Return "1 group", "2,030 groups"."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def size(nbytes: int) -> str:
    """Return a number of bytes with three significant digits and a unit: "812 bytes", "1.24 MB", "401 MB"."""
    if nbytes < 1000:
        return counted(nbytes, "byte")
    amount, power = float(nbytes), 0
    while amount >= 999.5 and power < len(UNITS) - 1:
        amount, power = amount / 1000, power + 1
    digits = 2 if amount < 9.995 else 1 if amount < 99.95 else 0
    return f"{amount:.{digits}f} {UNITS[power]}"

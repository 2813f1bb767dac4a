"""Text from a file, made safe to print: nothing in a name or a value may move the cursor or break a line."""

from __future__ import annotations

ELLIPSIS = "…"
COMMON = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def readable(text: str) -> str:
    """Return `text` with control characters and lone surrogates as escapes; the rest, in any script, as it is."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escape(letter) for letter in text)


def quoted(text: str) -> str:
    """Return `text` between double quotes, as C and CDL would write it."""
    return '"' + readable(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def text_of(content: bytes) -> str:
    """Return bytes as text: UTF-8, or latin-1 where they are not UTF-8. Padding NULs at the end are left out."""
    content = content.rstrip(b"\0")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def shortened(text: str, limit: int | None) -> str:
    """Return `text` in at most `limit` characters, the last of them an ellipsis where some were left out."""
    if limit is None or len(text) <= limit:
        return text
    return text[: max(limit - 1, 1)] + ELLIPSIS


def _escape(letter: str) -> str:
    if letter == "\u00a0":
        return letter
    if letter in COMMON:
        return COMMON[letter]
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

"""Python terms in messages of the library, turned into those of the command line."""

from __future__ import annotations

import re

_OPTION = re.compile(r"(?<![\w.\-])([a-z]+(?:_[a-z]+)*)=(True\b|\[[^\]]*\]|\{[^}]*\}|'[^']*'|[A-Z][A-Z_]*\b|\d+\b)?")
_PAIR = re.compile(r"""['"](\w+)['"]:\s*([^,}]+)""")


def in_cli_terms(text: str, known: frozenset[str]) -> str:
    """Return `text` with Python keywords written as options.

    `strict=True` becomes `--strict`, `exclude=[PATTERN]` becomes `--exclude PATTERN`, `limits={'depth': NUMBER}`
    becomes `--limits depth=NUMBER`, and `branch=` becomes `--branch`. Only names in `known` are options.
    """

    def replaced(match: re.Match[str]) -> str:
        name, value = match[1], match[2] or ""
        if name not in known:
            return match[0]
        flag = f"--{name.replace('_', '-')}"
        if value in ("", "True"):
            return flag
        if value.startswith("{"):
            return " ".join(f"{flag} {key}={one.strip()}" for key, one in _PAIR.findall(value)) or flag
        return flag + " " + value.strip("[]'")

    return _OPTION.sub(replaced, text)

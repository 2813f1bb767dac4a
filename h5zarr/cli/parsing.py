"""How the command line is parsed: sizes, and suggestions for what is mistyped."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from typing import Any, NoReturn

_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kKMGT]?)(i?)[bB]?")
_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}
_OF_STORAGE = frozenset(("endpoint_url", "profile", "key", "secret", "token", "requester_pays", "account_name"))
_SIZE_WANTED = "expected a size such as 8MB, 8MiB or 8000000"


class Parser(argparse.ArgumentParser):
    """A parser that suggests what a mistyped command, option or choice was meant to be."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        meant = suggestion(str(value), known)
        if not meant and action.metavar == "COMMAND":
            meant = f"\nFor example: {self.prog} translate ocean.nc ocean.json. {self.prog} --help lists the commands."
        what = f"{value!r} is not one of {', '.join(known)}{meant}"
        raise argparse.ArgumentError(action, what)

    def knows(self, name: str) -> bool:
        """Return whether this is an option, or the beginning of one, which argparse accepts."""
        return any(
            flag.startswith(name.partition("=")[0]) for action in self._actions for flag in action.option_strings
        )

    def refuse_options(self, names: list[str]) -> NoReturn:
        """End with an error that names unknown options of this command, and the options that may be meant."""
        known = [flag for action in self._actions for flag in action.option_strings]
        self.error("; ".join(f"there is no option {name}{_meant(name, known)}" for name in names))


def _meant(name: str, known: list[str]) -> str:
    """Return what an unknown option may mean: an option of the file system, or one that is mistyped."""
    key = name.lstrip("-").replace("-", "_")
    if key in _OF_STORAGE and "--storage-options" in known:
        return f": use --storage-options {key}=VALUE" + (
            ", and --output-options for the output" if "--output-options" in known else ""
        )
    return suggestion(name, known)


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return ": did you mean X?" for the most similar known word; empty if there is none."""
    from difflib import get_close_matches  # needed for errors only

    near = get_close_matches(word, list(known), n=1)
    return f": did you mean {near[0]}?" if near else ""


def size(text: str) -> int:
    """Return a number of bytes: 8MB and 8M are 8,000,000, 8MiB is 8,388,608, and a plain number is itself."""
    found = _SIZE.fullmatch(text.strip())
    if found is None or (found[3] and not found[2]):
        raise argparse.ArgumentTypeError(f"{text!r}: {_SIZE_WANTED}")
    unit: int = (1024 if found[3] else 1000) ** _POWERS[found[2]]
    if "." not in found[1]:
        return int(found[1]) * unit
    nbytes = float(found[1]) * unit
    if not nbytes.is_integer():
        raise argparse.ArgumentTypeError(f"{text!r}: this is not a whole number of bytes")
    return int(nbytes)

"""Damage that reaches deep code: it hits metadata, uses plausible addresses and counts, and corrects checksums."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from numcodecs.jenkins import jenkins_lookup3

Span = tuple[int, int]  # from where to where


@dataclass(frozen=True, kw_only=True, eq=False)
class Seed:
    """Bytes to damage. `spans` are the metadata, `checks` the blocks that end in a checksum, `pointers` the addresses.

    `targets` are the addresses of structures, at which hostile pointers point.
    """

    name: str
    content: bytes
    spans: tuple[Span, ...]
    checks: tuple[Span, ...] = ()
    pointers: tuple[int, ...] = ()
    targets: tuple[int, ...] = ()
    order: Literal["little", "big"] = "little"

    def place(self, chance: random.Random) -> int:
        """Return a random position, usually in the metadata."""
        if not self.spans or chance.random() < 0.1:
            return chance.randrange(len(self.content))
        begin, end = chance.choice(self.spans)
        return chance.randrange(begin, end)


def mutate(seed: Seed, chance: random.Random) -> bytes:
    """Return a damaged copy, usually with correct checksums."""
    copy = bytearray(seed.content)
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 5))):
        chance.choice(_WAYS)(copy, seed, chance)
    if chance.random() < 0.04:
        del copy[chance.randrange(len(copy) + 1) :]
    elif chance.random() < 0.04:
        _shift(copy, seed, chance)
    if len(copy) == len(seed.content) and chance.random() < 0.9:
        correct_checksums(copy, seed)
    return bytes(copy)


def correct_checksums(copy: bytearray, seed: Seed) -> None:
    """Correct the checksums of changed structures, as an attacker would."""
    for begin, end in seed.checks:
        if copy[begin:end] != seed.content[begin:end]:
            copy[end - 4 : end] = jenkins_lookup3(bytes(copy[begin : end - 4])).to_bytes(4, "little")


def interesting(width: int, seed: Seed, chance: random.Random) -> int:
    """Return a critical number: zero, one, the maximum, powers of two and their neighbours, and sizes."""
    bits = 8 * width
    near = chance.choice((0, 0, 0, 1, -1))
    base = chance.choice(
        (0, 1, 2, 3, (1 << bits) - 1, 1 << (bits - 1), 1 << chance.randrange(bits), len(seed.content), 32, 255, 65535)
    )
    return (base + near) % (1 << bits)


def _flip(copy: bytearray, seed: Seed, chance: random.Random) -> None:
    copy[min(seed.place(chance), len(copy) - 1)] ^= 1 << chance.randrange(8)


def _byte(copy: bytearray, seed: Seed, chance: random.Random) -> None:
    copy[min(seed.place(chance), len(copy) - 1)] = chance.choice((0, 1, 2, 3, 4, 8, 127, 128, 254, 255))


def _field(copy: bytearray, seed: Seed, chance: random.Random) -> None:
    """Put a number into a field, at an even position like most fields."""
    width = chance.choice((1, 2, 4, 4, 8, 8))
    place = seed.place(chance)
    place -= place % chance.choice((1, width))
    _put(copy, place, interesting(width, seed, chance).to_bytes(width, seed.order))


def _near(copy: bytearray, seed: Seed, chance: random.Random) -> None:
    """Change a number slightly."""
    width, place = chance.choice((1, 2, 4, 8)), seed.place(chance)
    number = int.from_bytes(copy[place : place + width], seed.order) + chance.choice((-8, -1, 1, 2, 8, 64))
    _put(copy, place, (number % (1 << 8 * width)).to_bytes(width, seed.order))


def _pointer(copy: bytearray, seed: Seed, chance: random.Random) -> None:
    """Replace an address by that of another structure, or by an undefined one."""
    if not seed.pointers:
        return _field(copy, seed, chance)
    target = chance.choice(seed.targets) + chance.choice((0, 0, 0, 0, 1, 8, -8))
    value = chance.choice((target, target, target, len(seed.content) - 1, (1 << 64) - 1, 0, (1 << 63) - 1))
    _put(copy, chance.choice(seed.pointers), (value % (1 << 64)).to_bytes(8, seed.order))


def _splice(copy: bytearray, seed: Seed, chance: random.Random) -> None:
    """Overwrite some metadata with other metadata."""
    count = chance.choice((2, 4, 8, 8, 16, 24, 40, 100))
    source = seed.place(chance)
    _put(copy, seed.place(chance), bytes(copy[source : source + count]))


def _swap(copy: bytearray, seed: Seed, chance: random.Random) -> None:
    """Swap two fields, or messages."""
    count = chance.choice((1, 2, 4, 8, 8, 16, 24))
    one, other = sorted((seed.place(chance), seed.place(chance)))
    if one + count <= other and other + count <= len(copy):
        copy[one : one + count], copy[other : other + count] = copy[other : other + count], copy[one : one + count]


def _shift(copy: bytearray, seed: Seed, chance: random.Random) -> None:
    """Insert or remove some bytes, so that the rest moves."""
    place = min(seed.place(chance), len(copy))
    if chance.random() < 0.5:
        copy[place:place] = chance.randbytes(chance.choice((1, 2, 4, 8)))
    else:
        del copy[place : place + chance.choice((1, 2, 4, 8))]


def _put(copy: bytearray, place: int, content: bytes) -> None:
    """Overwrite bytes up to the end of the content."""
    content = content[: max(0, len(copy) - place)]
    copy[place : place + len(content)] = content


_WAYS: tuple[Callable[[bytearray, Seed, random.Random], None], ...] = (
    *(_flip, _byte, _byte, _field, _field, _field, _near),
    *(_pointer, _pointer, _splice, _swap),
)

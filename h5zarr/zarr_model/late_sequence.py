"""A sequence that is loaded when it is first used: opening a cube of many files needs only their number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T", covariant=True)


class LateSequence(Sequence[T], Generic[T]):
    """A sequence of `count` items that `load` returns. Pickling does not load it."""

    __slots__ = ("_count", "_found", "_load")

    def __init__(self, count: int, load: Callable[[], Sequence[T]]) -> None:
        self._count, self._load = count, load
        self._found: Sequence[T] | None = None

    def loaded(self) -> Sequence[T]:
        """Return the items."""
        if self._found is None:
            self._found = self._load()
        return self._found

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: int) -> T: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[T]: ...
    def __getitem__(self, number: int | slice) -> T | Sequence[T]:
        return self.loaded()[number]

    def __iter__(self) -> Iterator[T]:
        return iter(self.loaded())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(other) == self._count and all(map(_is_equal, self, other))

    def __hash__(self) -> int:
        return hash(self._count)

    def __reduce__(self) -> Any:
        return LateSequence, (self._count, self._load)

    def __repr__(self) -> str:
        return f"<LateSequence of {self._count:,}>"


def _is_equal(one: object, other: object) -> bool:
    return one == other

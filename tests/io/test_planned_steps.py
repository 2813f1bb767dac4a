"""Steps over a remote source: cached bytes are used first, and hinted bytes are fetched with the next round."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from h5zarr.io.span import Pages, Span
from h5zarr.io.steps import Crew, Hints, Partial, Step, attempt, both, run, together


class FarFile:
    """A file of the bytes 0, 1, 2, ... with a cache. The first `held` bytes are cached from the start."""

    def __init__(self, held: int = 0, *, takes_hints: bool = False) -> None:
        self.held = set(range(held))
        self.rounds: list[list[int]] = []
        self.hints: list[Span | Pages] = []
        self._takes_hints = takes_hints

    def read_many(self, spans: Sequence[Span]) -> list[memoryview]:
        wanted = {place for span in spans for place in range(span.address, span.end)}
        if lacking := sorted(wanted - self.held):
            self.rounds.append(lacking)
            self.held |= wanted
            if self._takes_hints:
                self.held |= {hint.address for hint in self.hints if isinstance(hint, Span)}
        return [self._bytes(span) for span in spans]

    def peek(self, spans: Sequence[Span]) -> Partial | None:
        answers = Partial(self._bytes(span) if span.address in self.held else None for span in spans)
        return answers if any(answer is not None for answer in answers) else None

    def take_hints(self, hints: Hints) -> None:
        self.hints += hints

    def _bytes(self, span: Span) -> memoryview:
        return memoryview(bytes(place % 256 for place in range(span.address, span.end)))

    def run(self, step: Step[object]) -> object:
        return run(step, self.read_many, self)


def read_chain(*places: int) -> Step[list[int]]:
    found = []
    for place in places:
        (buffer,) = yield [Span(place, 1)]
        found.append(buffer[0])
    return found


def test_steps_that_have_their_bytes_do_not_wait_for_those_that_lack_some() -> None:
    file = FarFile(held=100)
    assert file.run(together([read_chain(200, 1), read_chain(2, 3, 201), read_chain(4, 202, 5)])) == [
        [200, 1],
        [2, 3, 201],
        [4, 202, 5],
    ]
    assert file.rounds == [[200, 201, 202]]


def test_steps_run_in_lockstep_without_a_planner() -> None:
    file = FarFile(held=100)
    run(together([read_chain(200, 1), read_chain(2, 3, 201)]), file.read_many)
    assert file.rounds == [[200], [201]]


def test_steps_within_steps_go_on_too() -> None:
    file = FarFile(held=100)
    inner = both(read_chain(200), read_chain(1, 2, 201))
    assert file.run(both(attempt(inner), together([read_chain(3, 4, 5, 202)]))) == (
        ([200], [1, 2, 201]),
        [[3, 4, 5, 202]],
    )
    assert file.rounds == [[200, 201, 202]]


def test_a_crew_uses_what_is_at_hand_first() -> None:
    file, crew, found = FarFile(held=100), Crew(), []

    def keep(value: list[int]) -> None:
        found.append(value)
        if value == [1, 2]:
            crew.start(both(read_chain(3), read_chain(202)), keep)  # type: ignore[arg-type]

    crew.start(read_chain(200), keep)
    crew.start(read_chain(1, 2), keep)
    crew.start(both(read_chain(4), read_chain(201)), keep)  # type: ignore[arg-type]
    file.run(crew.finish())
    assert sorted(found, key=str) == [([3], [202]), ([4], [201]), [1, 2], [200]]
    assert file.rounds == [[200, 201, 202]]


def hint_at(place: int, *then: int) -> Step[list[int]]:
    yield Hints([Span(place, 1)])
    return (yield from read_chain(*then))


def test_hints_make_no_round_of_their_own() -> None:
    file = FarFile(held=100)
    assert file.run(hint_at(200)) == []
    assert file.run(together([hint_at(201), hint_at(202)])) == [[], []]
    assert file.rounds == []
    assert file.hints == [Span(200, 1), Span(201, 1), Span(202, 1)]


def test_what_was_hinted_at_comes_with_the_next_round() -> None:
    file = FarFile(takes_hints=True)
    crew = Crew()
    crew.start(both(hint_at(200, 1, 200), hint_at(201, 2, 201)), lambda _: None)
    crew.start(hint_at(202, 3, 202), lambda _: None)
    file.run(crew.finish())
    assert file.rounds == [[1, 2, 3]]


def test_hints_are_ignored_without_a_planner() -> None:
    file = FarFile()
    assert run(both(hint_at(200, 1), hint_at(201, 2)), file.read_many) == ([1], [2])
    assert (file.rounds, file.hints) == ([[1, 2]], [])


# A leaf is a chain of requests. Each link has some places to read together, and whether to send a hint first.
links = st.tuples(st.booleans(), st.lists(st.integers(0, 50), min_size=1, max_size=3))
trees = st.recursive(st.lists(links, max_size=4), lambda children: st.tuples(children, children), max_leaves=12)


def read_links(chain: list[tuple[bool, list[int]]]) -> Step[object]:
    found = []
    for is_hinting, places in chain:
        if is_hinting:
            yield Hints([Span(places[-1], 1)])
        buffers = yield [Span(place, 1) for place in places]
        found.append((is_hinting, [buffer[0] for buffer in buffers]))
    return found


def as_step(tree: object) -> Step[object]:
    if isinstance(tree, tuple):
        return both(as_step(tree[0]), as_step(tree[1]))
    assert isinstance(tree, list)
    return read_links(tree)


def longest_chain(tree: object, held: int) -> int:
    if isinstance(tree, tuple):
        return max(longest_chain(part, held) for part in tree)
    assert isinstance(tree, list)
    return sum(max(places) >= held for _, places in tree)


@given(trees, st.integers(0, 51), st.booleans())
def test_any_tree_of_steps_ends_with_its_result_in_no_more_rounds_than_its_longest_chain(
    tree: object, held: int, takes_hints: bool
) -> None:
    file = FarFile(held=held, takes_hints=takes_hints)
    assert file.run(as_step(tree)) == tree
    assert len(file.rounds) <= longest_chain(tree, held)


@given(st.lists(trees, max_size=4), st.integers(0, 51))
def test_any_crew_of_steps_ends_with_their_results_in_no_more_rounds_than_its_longest_chain(
    crew_of: list[object], held: int
) -> None:
    file, crew, found = FarFile(held=held), Crew(), list[object]()
    for tree in crew_of:
        crew.start(as_step(tree), found.append)
    file.run(crew.finish())
    assert sorted(found, key=str) == sorted(crew_of, key=str)
    assert len(file.rounds) <= max((longest_chain(tree, held) for tree in crew_of), default=0)

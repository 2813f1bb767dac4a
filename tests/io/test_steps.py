from __future__ import annotations

from collections.abc import Sequence

import pytest

from h5zarr.errors import H5ZarrError, MalformedFile, SourceError
from h5zarr.io.span import Span
from h5zarr.io.steps import Crew, Step, attempt, run, together


class FakeFile:
    """A file of the bytes 0, 1, 2, ... that records what each round asked for."""

    def __init__(self) -> None:
        self.rounds: list[list[Span]] = []

    def read_many(self, spans: Sequence[Span]) -> list[memoryview]:
        self.rounds.append(list(spans))
        return [memoryview(bytes(i % 256 for i in range(span.address, span.end))) for span in spans]


def read_byte(address: int) -> Step[int]:
    (buffer,) = yield [Span(address, 1)]
    return buffer[0]


def read_chain(address: int, length: int) -> Step[list[int]]:
    found = []
    for place in range(address, address + length):
        found.append((yield from read_byte(place)))
    return found


def read_nothing(result: int) -> Step[int]:
    return result
    yield


def read_broken(address: int) -> Step[int]:
    yield [Span(address, 1)]
    raise MalformedFile("no such signature", at=address)


def test_run_returns_what_the_step_returns_one_round_a_request() -> None:
    file = FakeFile()
    assert run(read_chain(3, 4), file.read_many) == [3, 4, 5, 6]
    assert len(file.rounds) == 4


def test_run_of_a_step_that_asks_for_nothing_reads_nothing() -> None:
    file = FakeFile()
    assert run(read_nothing(5), file.read_many) == 5
    assert file.rounds == []


def test_an_empty_request_is_answered_without_a_round() -> None:
    def read_empty() -> Step[int]:
        buffers = yield []
        return len(buffers)

    file = FakeFile()
    assert run(read_empty(), file.read_many) == 0
    assert run(together([read_empty(), read_empty()]), file.read_many) == [0, 0]
    assert file.rounds == []


def test_together_merges_each_round_into_one_and_keeps_the_order_of_results() -> None:
    file = FakeFile()
    steps = [read_chain(10, 1), read_chain(20, 3), read_chain(30, 2)]
    assert run(together(steps), file.read_many) == [[10], [20, 21, 22], [30, 31]]
    assert [[span.address for span in spans] for spans in file.rounds] == [[10, 20, 30], [21, 31], [22]]


def test_together_of_nothing_is_an_empty_list() -> None:
    file = FakeFile()
    assert run(together([]), file.read_many) == []
    assert file.rounds == []


def test_together_within_together_is_still_one_round() -> None:
    file = FakeFile()
    outer = together([together([read_byte(1), read_byte(2)]), together([read_byte(3)])])
    assert run(outer, file.read_many) == [[1, 2], [3]]
    assert len(file.rounds) == 1


def test_steps_that_ask_for_several_spans_get_their_own_buffers() -> None:
    def read_pair(address: int) -> Step[tuple[int, int]]:
        first, second = yield [Span(address, 1), Span(address + 100, 1)]
        return first[0], second[0]

    assert run(together([read_pair(1), read_pair(2)]), FakeFile().read_many) == [(1, 101), (2, 102)]


def test_attempt_keeps_one_broken_step_from_its_neighbours() -> None:
    file = FakeFile()
    good, broken, also_good = run(
        together([attempt(read_byte(1)), attempt(read_broken(2)), attempt(read_byte(3))]), file.read_many
    )
    assert (good, also_good) == (1, 3)
    assert isinstance(broken, MalformedFile)
    assert broken.address == 2


def test_attempt_does_not_hide_a_fault_of_the_program() -> None:
    def read_wrongly() -> Step[int]:
        yield [Span(0, 1)]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(attempt(read_wrongly()), FakeFile().read_many)


def test_without_attempt_an_error_ends_the_run() -> None:
    with pytest.raises(H5ZarrError, match="no such signature"):
        run(together([read_byte(1), read_broken(2)]), FakeFile().read_many)


def test_an_error_of_the_source_ends_the_run() -> None:
    def refuse(spans: Sequence[Span]) -> list[memoryview]:
        raise SourceError("gone")

    with pytest.raises(SourceError, match="gone"):
        run(together([attempt(read_byte(1))]), refuse)


def test_a_crew_grows_while_it_runs() -> None:
    file, crew, found = FakeFile(), Crew(), []

    def keep(value: int) -> None:
        found.append(value)
        if value < 8:
            crew.start(read_byte(2 * value), keep)
            crew.start(read_byte(2 * value + 1), keep)

    crew.start(read_byte(1), keep)
    run(crew.finish(), file.read_many)
    assert found == list(range(1, 16))
    assert [len(spans) for spans in file.rounds] == [1, 2, 4, 8]


@pytest.mark.parametrize("asks", [True, False])
def test_a_chain_of_ten_thousand_steps_does_not_recurse(asks: bool) -> None:
    crew, ended = Crew(), []

    def start(number: int) -> None:
        crew.start(read_byte(number % 100) if asks else read_nothing(number), lambda _: go_on(number))

    def go_on(number: int) -> None:
        ended.append(number)
        if number < 10_000:
            start(number + 1)

    start(1)
    run(crew.finish(), FakeFile().read_many)
    assert len(ended) == 10_000


def test_ten_thousand_steps_together_are_one_round() -> None:
    file = FakeFile()
    assert run(together(read_byte(n % 256) for n in range(10_000)), file.read_many) == [n % 256 for n in range(10_000)]
    assert len(file.rounds) == 1

"""A run that is stopped before it begins ends at once, whatever it waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from h5zarr.commands.catalog.waiting import Stopped, map_at_once, wait_for


def test_a_result_and_an_error_come_through() -> None:
    assert wait_for(lambda is_stopped: 3, lambda: False) == 3
    with pytest.raises(ZeroDivisionError):
        wait_for(lambda is_stopped: 1 // 0, lambda: False)


def test_a_stopped_run_says_so_and_leaves_the_function() -> None:
    is_left = threading.Event()

    def wait(is_stopped: Callable[[], bool]) -> None:
        while not is_stopped():
            pass
        is_left.set()

    with pytest.raises(Stopped, match=r"^the run was stopped before it began$"):
        wait_for(wait, lambda: True)
    assert is_left.wait(10)


def test_calls_run_at_once_and_their_results_keep_the_order() -> None:
    together = threading.Barrier(32, timeout=10)

    def act(number: int) -> int:
        together.wait()  # fails unless 32 calls run at the same time
        return number * number

    assert map_at_once(act, range(64)) == [number * number for number in range(64)]
    assert map_at_once(act, []) == []
    with pytest.raises(ZeroDivisionError):
        map_at_once(lambda number: 1 // number, [1, 0, 2])

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from h5zarr.io.cache import BlockCache

CONTENT = bytes(range(200))


def fill(cache: BlockCache, *pairs: tuple[int, int]) -> None:
    cache.add(np.array(pairs), [CONTENT[address:end] for address, end in pairs])


def take(cache: BlockCache, *pairs: tuple[int, int]) -> list[bytes]:
    return [bytes(view) for view in cache.take(np.array(pairs))]


@given(
    st.sets(st.integers(1, 199), max_size=20),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), min_size=1, max_size=20),
)
def test_what_is_taken_is_what_the_file_holds(cuts: set[int], asked: list[tuple[int, int]]) -> None:
    cache, edges = BlockCache(), [0, *sorted(cuts), 200]
    blocks = list(pairwise(edges))
    fill(cache, *blocks[::2])
    if blocks[1::2]:
        fill(cache, *blocks[1::2])
    pairs = [(min(ends), max(ends)) for ends in asked]
    assert take(cache, *pairs) == [CONTENT[address:end] for address, end in pairs]


def test_a_range_inside_one_block_is_not_copied() -> None:
    cache, block = BlockCache(), CONTENT[:100]
    cache.add(np.array([[0, 100]]), [block])
    (view,) = cache.take(np.array([[10, 20]]))
    assert view.obj is block


def test_what_was_not_used_for_longest_goes_first() -> None:
    cache = BlockCache()
    fill(cache, (0, 10), (10, 20), (20, 30))
    take(cache, (0, 1))
    take(cache, (12, 25))
    take(cache, (0, 1))
    cache.trim(20)
    assert cache.ranges[:, 0].tolist() == [0, 10]
    assert cache.nbytes == 20


def test_a_limit_below_every_block_keeps_nothing() -> None:
    cache = BlockCache()
    fill(cache, (0, 10))
    cache.trim(5)
    assert cache.nbytes == 0
    assert take(cache, (3, 3)) == [b""]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 10)), max_size=8),
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=8),
)
def test_a_cache_knows_what_it_holds(blocks: list[tuple[int, int]], wanted: list[tuple[int, int]]) -> None:
    cache, held = BlockCache(), set[int]()
    for address, nbytes in blocks:
        places = set(range(address, address + nbytes))
        if not places & held:
            cache.add(np.array([[address, address + nbytes]]), [bytes(nbytes)])
            held |= places
    asked = np.array([(address, address + nbytes) for address, nbytes in wanted], dtype=np.int64).reshape(-1, 2)
    expected = [set(range(address, end)) <= held for address, end in asked.tolist()]
    assert cache.holds(asked).tolist() == expected

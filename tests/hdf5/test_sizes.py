from __future__ import annotations

import pytest

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.sizes import Sizes, Visits
from h5zarr.io.span import Span


@pytest.mark.parametrize(("width", "undefined"), [(2, 0xFFFF), (4, 0xFFFFFFFF), (8, 0xFFFFFFFFFFFFFFFF)])
def test_all_ones_is_the_undefined_address_at_every_width(width: int, undefined: int) -> None:
    sizes = Sizes(offset_nbytes=width, base=512)
    assert sizes.address(undefined) is None
    assert sizes.address(undefined - 1) == undefined - 1 + 512


def test_a_narrow_undefined_address_is_an_address_in_a_wide_file() -> None:
    assert Sizes(offset_nbytes=8).address(0xFFFFFFFF) == 0xFFFFFFFF


def test_a_span_may_touch_both_ends_of_the_file() -> None:
    assert Sizes(base=512, end=1024).span(512, 512, "block") == Span(512, 512)


@pytest.mark.parametrize(
    ("address", "nbytes"), [(511, 1), (1024, 1), (1000, 25), (600, -1), (-8, 4), (600, 1 << 64), (1 << 63, 8)]
)
def test_a_span_outside_the_file_is_refused_with_its_address(address: int, nbytes: int) -> None:
    with pytest.raises(MalformedFile, match=f"block of {nbytes} bytes reaches outside the file") as caught:
        Sizes(base=512, end=1024).span(address, nbytes, "block")
    assert caught.value.address == address


def test_span_up_to_takes_what_it_wants_where_there_is_room() -> None:
    assert Sizes(end=1024).span_up_to(100, 16, 300, "header") == Span(100, 300)


def test_span_up_to_ends_with_the_file() -> None:
    assert Sizes(end=1024).span_up_to(1000, 16, 300, "header") == Span(1000, 24)


def test_span_up_to_insists_on_the_least() -> None:
    with pytest.raises(MalformedFile, match="header of 16 bytes reaches outside"):
        Sizes(end=1024).span_up_to(1010, 16, 300, "header")


def test_a_node_may_be_visited_once() -> None:
    visits = Visits(Sizes(end=1000), "tree")
    visits.claim(100, 10)
    visits.claim(200, 10)
    with pytest.raises(MalformedFile, match="tree reaches the same node twice") as caught:
        visits.claim(100, 10)
    assert caught.value.address == 100


def test_nodes_may_not_take_more_bytes_than_the_file_has() -> None:
    visits = Visits(Sizes(end=100), "tree")
    visits.claim(0, 60)
    visits.claim(1, 40)
    with pytest.raises(MalformedFile, match="tree takes more bytes than the file has"):
        visits.claim(2, 1)

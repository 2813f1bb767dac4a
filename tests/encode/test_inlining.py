"""What is inlined: small arrays, coordinates, what can only be inlined; and where the limits are."""

from __future__ import annotations

import numpy as np
import pytest

from h5zarr.encode.inlining import Inlining
from h5zarr.zarr_model.hierarchy import ArrayNode
from tests.encode.trees import CONTENT, encode, held, stored, texts

NOTHING = Inlining.up_to(0)


def array(nodes: object, path: str = "/x") -> ArrayNode:
    node = nodes[path]  # type: ignore[index]
    assert isinstance(node, ArrayNode)
    return node


@pytest.mark.parametrize(("nbytes", "inlined"), [(512, True), (513, False)])
def test_an_array_up_to_a_kibibyte_is_inlined(nbytes: int, inlined: bool) -> None:
    hierarchy, read = encode({"/x": stored(2, nbytes, name="other")})
    manifest = array(hierarchy.nodes).manifest
    assert bool(manifest.inline) is inlined
    assert manifest.count == (0 if inlined else 2)
    assert bool(read) is inlined


def test_what_is_inlined_is_the_bytes_of_the_file() -> None:
    hierarchy, _ = encode({"/x": stored(2, 8, name="other")})
    assert array(hierarchy.nodes).manifest.inline == {(0,): CONTENT[1000:1008], (1,): CONTENT[1008:1016]}


def test_the_chunks_of_a_coordinate_are_put_together() -> None:
    hierarchy, _ = encode({"/x": stored(2, 8)})
    assert array(hierarchy.nodes).chunk_shape == (16,)
    assert array(hierarchy.nodes).manifest.inline == {(0,): CONTENT[1000:1016]}


@pytest.mark.parametrize(("name", "inlined"), [("x", True), ("other", False)])
def test_coordinates_may_be_larger(name: str, inlined: bool) -> None:
    hierarchy, _ = encode({"/x": stored(2, 4096, name=name)})
    assert bool(array(hierarchy.nodes).manifest.inline) is inlined


def test_with_a_limit_of_zero_nothing_is_read() -> None:
    hierarchy, read = encode({"/x": stored(2, 1)}, NOTHING)
    assert array(hierarchy.nodes).manifest.count == 2
    assert read == []


def test_what_can_only_be_inlined_is_so_even_with_a_limit_of_zero() -> None:
    hierarchy, _ = encode({"/x": held(b"abc"), "/t": texts(["a", "bc"], 128)}, NOTHING)
    assert array(hierarchy.nodes).manifest.inline == {(0,): b"abc"}
    two = b"\2\0\0\0" + b"\1\0\0\0a" + b"\2\0\0\0bc"
    assert array(hierarchy.nodes, "/t").manifest.inline == {(0,): two}
    assert hierarchy.problems == ()


def test_past_the_total_an_array_is_referred_to() -> None:
    hierarchy, _ = encode({"/x": stored(1, 60), "/y": stored(1, 60, name="y")}, Inlining(total_nbytes=100))
    counts = [array(hierarchy.nodes, path).manifest.count for path in ("/x", "/y")]
    assert counts == [0, 1]
    assert hierarchy.problems == ()


def test_past_the_total_what_can_only_be_inlined_is_a_problem() -> None:
    hierarchy, _ = encode({"/x": held(bytes(101)), "/t": texts(["a"], 90)}, Inlining(total_nbytes=100))
    (problem,) = hierarchy.problems
    assert problem.path == "/x"
    assert problem.kind == "unrepresentable"
    assert "takes 101 bytes, but only 100 may still be inlined" in problem.message
    assert "max_inline_bytes=" in problem.remedy
    assert "/x" not in hierarchy.nodes
    assert "/t" in hierarchy.nodes


def test_what_can_only_be_inlined_comes_first() -> None:
    hierarchy, _ = encode({"/x": stored(1, 60), "/t": texts(["a"], 90)}, Inlining(total_nbytes=100))
    assert hierarchy.problems == ()
    assert array(hierarchy.nodes).manifest.count == 1


def test_an_array_without_content_has_no_chunks() -> None:
    hierarchy, _ = encode({"/x": held(b"")})
    node = array(hierarchy.nodes)
    assert node.shape == (0,)
    assert node.chunk_shape == (1,)
    assert node.manifest.count == len(node.manifest.inline) == 0


def test_all_arrays_are_read_in_one_round() -> None:
    variables = {f"/{name}": stored(2, 8, name=name) for name in "abcdef"}
    _, read = encode(variables)
    assert len(read) == 12
    assert np.unique([span.address for span in read]).size == 2

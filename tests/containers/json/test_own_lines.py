"""References that h5zarr wrote are read in bulk, and what comes of it is what a JSON parser gives."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from h5zarr.containers.json import own_lines
from h5zarr.containers.json.json_reading import decode_document, decode_own_document, decode_references
from h5zarr.containers.json.own_lines import decode_own_lines
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.source_state import SourceState
from h5zarr.errors import H5ZarrError
from h5zarr.io.source import Identity
from h5zarr.io.urls import display_url
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, Hierarchy, Manifest
from tests.containers.hierarchies import LITTLE, assert_same, write_json_v2, write_json_v3
from tests.containers.json.test_json_v3 import ODD_NAMES

LARGEST = 2**62 - 1
Writer = Callable[..., object]
NAMES = st.sampled_from([*ODD_NAMES, "c/0", "0/1", "c/c"]) | st.text(min_size=1, max_size=5).filter(
    lambda name: not {"/", "\\"} & set(name) and name not in (".", "..") and name.isprintable()
)

URLS = (st.text(max_size=8) | st.sampled_from(ODD_NAMES)).filter(lambda url: display_url(url) == url)


def make_array(index: np.ndarray, address: np.ndarray, nbytes: np.ndarray, **manifest: object) -> ArrayNode:
    rank = index.shape[1]
    return ArrayNode(
        grid=RegularGrid((8,) * rank, (1,) * rank),
        data_type="float32",
        codecs=(LITTLE,),
        fill_value=0.0,
        dimension_names=tuple("abcd"[:rank]),
        attributes={"units": 'é"\\/'},
        manifest=Manifest(index=index, address=address, nbytes=nbytes, **manifest),  # type: ignore[arg-type]
    )


@st.composite
def arrays(draw: st.DrawFn, url_count: int) -> ArrayNode:
    rank = draw(st.integers(0, 3))
    coordinate = st.integers(0, 11) | st.integers(0, 10**17)
    chosen = draw(st.sets(st.tuples(*[coordinate] * rank), max_size=12 if rank else 1))
    held = {index for index in chosen if draw(st.booleans())} if draw(st.booleans()) else set()
    rows = sorted(chosen - held)
    numbers = st.lists(st.integers(0, 12) | st.integers(0, LARGEST), min_size=len(rows), max_size=len(rows))
    one = st.integers(0, url_count - 1)
    many = st.lists(one, min_size=len(rows), max_size=len(rows)).map(lambda found: np.array(found, np.int32))
    return make_array(
        np.array(rows, np.int64).reshape(len(rows), rank),
        np.array(draw(numbers), np.int64),
        np.array(draw(numbers), np.int64),
        source=draw(one | many),
        inline={index: draw(st.binary(max_size=5)) for index in sorted(held)},
    )


@st.composite
def hierarchies(draw: st.DrawFn) -> Hierarchy:
    urls = draw(st.lists(URLS, min_size=1, max_size=3, unique=True))
    nodes: dict[str, GroupNode | ArrayNode] = {"/": GroupNode(attributes={})}
    for name in draw(st.lists(NAMES, max_size=4, unique=True)):
        parent = ""
        for part in name.split("/")[:-1]:
            parent += f"/{part}"
            assume(not isinstance(nodes.get(parent), ArrayNode))
            nodes.setdefault(parent, GroupNode(attributes={}))
        assume(f"/{name}" not in nodes)
        nodes[f"/{name}"] = draw(arrays(len(urls)))
    return Hierarchy(nodes=nodes, urls=tuple(urls))


def write(hierarchy: Hierarchy, write_json: Writer = write_json_v3) -> bytes:
    sources = tuple(SourceState(url, Identity(nbytes=1)) for url in hierarchy.urls)
    out = io.BytesIO()
    write_json(hierarchy, Provenance("1", sources), out)
    return out.getvalue()


def outcome(content: bytes) -> Hierarchy | str:
    try:
        return decode_references(content, "refs.json").hierarchy
    except H5ZarrError as error:
        return f"{type(error).__name__}: {error}"


def check_same_outcome(content: bytes) -> Hierarchy | str:
    """Check that it makes no difference whether lines are read in bulk, however short a run is, or not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("h5zarr.containers.json.json_reading.decode_own_document", lambda content: None)
        expected = outcome(content)
        patch.undo()
        patch.setattr(own_lines, "_FEWEST", 2)
        patch.setattr(own_lines, "SLAB_NBYTES", 100)
        found = outcome(content)
    if isinstance(expected, str) or isinstance(found, str):
        assert found == expected
    else:
        assert_same(found, expected)
    return found


@settings(max_examples=150)
@given(hierarchies(), st.sampled_from([write_json_v2, write_json_v3]))
def test_in_bulk_or_one_by_one_references_read_the_same(hierarchy: Hierarchy, write_json: Writer) -> None:
    found = check_same_outcome(write(hierarchy, write_json))
    assert isinstance(found, Hierarchy)
    if write_json is write_json_v3:
        assert_same(found, hierarchy)


def some_lines(count: int = 30, url_count: int = 2) -> Hierarchy:
    index = np.stack(np.unravel_index(np.arange(count), (2, count // 2)), axis=1)
    columns = index, np.arange(count) * 1000, np.arange(count) + 5
    source = np.arange(count, dtype=np.int32) % url_count if url_count > 1 else 0
    nodes = {
        "/": GroupNode(attributes={}),
        "/one": make_array(*columns, inline={(5, 5): b"ab"}),
        "/two": make_array(*columns, source=source),
        "/three": make_array(*columns, inline={(7, 7): b"c"}),
    }
    return Hierarchy(nodes=nodes, urls=tuple(f"s3://bucket/{number}.nc" for number in range(url_count)))


@st.composite
def edited_lines(draw: st.DrawFn) -> bytes:
    """Return a file that h5zarr wrote and that was edited afterwards."""
    content = bytearray(write(some_lines()))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(content)))
        line = slice(content.rfind(b"\n", 0, at) + 1, content.find(b"\n", at) + 1)
        match draw(st.sampled_from(["change", "insert", "remove", "repeat line", "remove line", "cut"])):
            case "change":
                content[at : at + 1] = [draw(st.sampled_from(b'0123456789"[]{},:/\\\n ac.-') | st.integers(0, 255))]
            case "insert":
                content[at:at] = draw(st.sampled_from([b"0", b" ", b"\n", b"\\", b'"', b",", b"\xc3\xa9", b"\0"]))
            case "remove":
                del content[at : at + 1]
            case "repeat line":
                place = content.rfind(b"\n", 0, draw(st.integers(0, len(content)))) + 1
                content[place:place] = content[line]
            case "remove line":
                del content[line]
            case "cut":
                del content[at:]
    return bytes(content)


@settings(max_examples=250)
@given(edited_lines())
def test_edited_references_read_as_by_a_json_parser(content: bytes) -> None:
    check_same_outcome(content)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"one/c/0/5":["s3://bucket/0.nc",5000,10]', b'"one/c/0/4":["s3://bucket/0.nc",5000,10]'),
        (b'"one/c/0/5":["s3://bucket/0.nc",5000,10]', b'"one/c/0/5":["s3:\\/\\/bucket/0.nc",5000,10]'),
        (b'"one/c/0/5":["s3://bucket/0.nc",5000,10]', b'"one/c/0/5":["s3://bucket/0.nc",5e3,10]'),
        (b'"one/c/0/5":["s3://bucket/0.nc",5000,10]', b'"one/c/0/05":["s3://bucket/0.nc",5000,10]'),
        (b'"one/c/0/5":["s3://bucket/0.nc",5000,10]', b'"one/c/0/5":[null,5000,10]'),
        (b'"one/c/0/5":["s3://bucket/0.nc",5000,10]', b'"two/c/0/5":["s3://bucket/9.nc",1,1]'),
        (b'"one/c/0/5":["s3://bucket/0.nc",5000,10]', b'"one/c/0/5":["s3://bucket/0.nc",5000,9223372036854775808]'),
        (b'"one/c/0/5":["s3://bucket/0.nc",5000,10]', b'"one/x":{"a":"b",\n"one/c/0/5":["u",1,2],\n"c":"d"},"e":"f"'),
        (b'"one/c/0/5":["s3://bucket/0.nc",5000,10]', b'"one/c/0/5":["s3://bucket/0.nc",9223372036854775807,10]'),
        (b'"one/c/5/5":"base64:YWI="', b'"one/c/0/5":"base64:YWI="'),
        (b'["s3://bucket/0.nc",29000,34],\n"one/c/5/5"', b'["s3://bucket/0.nc",29000,34]0\n"one/c/5/5"'),
        (b'["s3://bucket/1.nc",29000,34],\n"three/zarr.json"', b'["s3://bucket/1.nc",29000,34]0\n"three/zarr.json"'),
        (b"\n}}\n", b'},\n"templates":{"a":"b"\n}}\n'),
        (b'{"version":1,\n"h5zarr":', b'{"version":1,\n"h5zarr":5,"h5zarr":'),
        (b',\n"refs":{\n', b',"gen":[1],\n"refs":{\n'),
    ],
)
def test_lines_that_h5zarr_does_not_write_are_not_taken_for_its_own(old: bytes, new: bytes) -> None:
    content = write(some_lines())
    assert content.count(old) == 1
    check_same_outcome(content.replace(old, new))


@pytest.mark.parametrize("url_count", [1, 7])
@pytest.mark.parametrize("write_json", [write_json_v2, write_json_v3])
def test_long_runs_are_read_in_bulk(write_json: Writer, url_count: int) -> None:
    hierarchy = some_lines(1000, url_count)
    lines = decode_own_lines(write(hierarchy, write_json))
    assert lines is not None
    assert [len(run.address) for run in lines.runs] == [1000, 1000, 1000]
    assert not any(isinstance(value, list) for value in lines.entries.values())
    if write_json is write_json_v3:
        assert_same(decode_references(write(hierarchy), "refs.json").hierarchy, hierarchy)


def test_files_of_others_are_not_read_in_bulk() -> None:
    content = write(some_lines())
    assert decode_own_document(content) is not None
    assert decode_own_document(content.replace(b"h5zarr", b"h6zarr")) is None
    assert decode_own_document(content[:-1]) is None
    assert len(decode_document(content).entries) == 1 + 3 + 90 + 2


def test_many_references_need_little_more_memory_than_their_columns() -> None:
    count = 200_000
    index = np.stack(np.unravel_index(np.arange(count), (50, 40, 100)), axis=1)
    array = make_array(index, np.arange(count) * 4096, np.full(count, 4000))
    hierarchy = Hierarchy(nodes={"/": GroupNode(attributes={}), "/v": array}, urls=("s3://bucket/" + "x" * 60,))
    content = write(hierarchy)
    tracemalloc.start()
    try:
        read = decode_references(content, "refs.json")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert_same(read.hierarchy, hierarchy)
    columns_nbytes = 5 * 8 * count
    assert peak < 4 * columns_nbytes

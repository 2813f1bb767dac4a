from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h5zarr.containers.json import chunk_text
from h5zarr.containers.json.chunk_text import encode_chunk_entries
from h5zarr.zarr_model.digits import MOST_DIGITS, decode_digits, digit_groups, group_widths
from h5zarr.zarr_model.hierarchy import TO_THE_END, Manifest

LARGEST = 2**62


def plain_loop(key_parts: tuple[str, ...], manifest: Manifest, urls: tuple[str, ...]) -> bytes:
    """Return what the bulk text must be, made one chunk at a time."""
    entries = []
    sources = np.broadcast_to(manifest.source, manifest.count).tolist()
    rows = zip(manifest.index.tolist(), manifest.address.tolist(), manifest.nbytes.tolist(), sources, strict=True)
    for index, address, nbytes, source in rows:
        key = "".join(part + str(i) for part, i in zip(key_parts, index, strict=False)) + key_parts[-1]
        reference = json.dumps([urls[source] or None, address, nbytes], separators=(",", ":"))
        entries.append(f",\n{json.dumps(key)}:{reference}")
    return "".join(entries).encode()


@st.composite
def manifests(draw: st.DrawFn, url_count: int) -> Manifest:
    rank = draw(st.integers(0, 5))
    count = draw(st.integers(0, 12))
    numbers = st.one_of(st.integers(0, 12), st.integers(9_990, 10_010), st.integers(0, LARGEST))
    columns = draw(st.lists(st.lists(numbers, min_size=count, max_size=count), min_size=rank + 2, max_size=rank + 2))
    table = np.array(columns, np.int64).reshape(rank + 2, count).T
    one = st.integers(0, url_count - 1)
    many = st.lists(one, min_size=count, max_size=count).map(lambda found: np.array(found, np.int32))
    return Manifest(index=table[:, :rank], address=table[:, -2], nbytes=table[:, -1], source=draw(one | many))


@settings(max_examples=300, deadline=None)
@given(st.data(), st.lists(st.text(), min_size=1, max_size=3), st.sampled_from("/."), st.text(), st.integers(1, 2000))
def test_bulk_text_is_the_text_of_the_plain_loop(
    data: st.DataObject, urls: list[str], separator: str, name: str, slab_nbytes: int
) -> None:
    manifest = data.draw(manifests(len(urls)))
    rank = manifest.index.shape[1]
    parts = (name, *[separator] * (rank - 1), "") if rank else (name,)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk_text, "SLAB_NBYTES", slab_nbytes)
        bulk = b"".join(encode_chunk_entries(parts, manifest, urls))
    assert bulk == plain_loop(parts, manifest, tuple(urls))


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1))
def test_digits_are_those_of_str(numbers: list[int]) -> None:
    groups = digit_groups(np.array(numbers, np.int64), group_widths(max(numbers)))
    texts = [b"".join(group[row].tobytes() for group in reversed(groups)) for row in range(len(numbers))]
    assert [text.replace(b"\0", b"").decode() for text in texts] == list(map(str, numbers))


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1))
def test_numbers_are_read_from_their_digits(numbers: list[int]) -> None:
    texts = [str(number).encode() for number in numbers]
    text = np.frombuffer(b",".join(texts) + b",", np.uint8)
    ends = np.cumsum([len(text) + 1 for text in texts]) - 1
    starts = ends - [len(text) for text in texts]
    values, stops = decode_digits(text, starts)
    assert values.tolist() == numbers
    assert stops.tolist() == ends.tolist()


def test_a_number_without_digits_is_zero_and_one_without_end_is_cut() -> None:
    text = np.frombuffer(b"x" + b"1" * 25 + b"x", np.uint8)
    values, stops = decode_digits(text, np.array([0, 1, 26]))
    assert stops.tolist() == [0, 1 + MOST_DIGITS, 26]
    assert values[[0, 2]].tolist() == [0, 0]


@pytest.mark.parametrize("count", [2, 40])
def test_a_whole_file_has_neither_address_nor_size(count: int) -> None:
    nbytes = np.full(count, 5)
    nbytes[1] = TO_THE_END
    manifest = Manifest(index=np.arange(count)[:, None], address=np.zeros(count, np.int64), nbytes=nbytes)
    entries = b"".join(encode_chunk_entries(("v/", ""), manifest, ["u"]))
    found = json.loads(b"{" + entries.removeprefix(b",") + b"}")
    assert found == {f"v/{number}": ["u"] if number == 1 else ["u", 0, 5] for number in range(count)}


def test_a_negative_number_is_refused_rather_than_written_wrong() -> None:
    one = np.array([1])
    with pytest.raises(ValueError, match="not negative"):
        list(encode_chunk_entries(("v",), Manifest(index=one[:, None][:, :0], address=-one, nbytes=one), ["u"]))
    with pytest.raises(ValueError, match="not negative"):
        list(encode_chunk_entries(("v",), Manifest(index=one[:, None][:, :0], address=one, nbytes=-one), ["u"]))


def test_many_chunks_need_the_memory_of_a_few_slabs() -> None:
    import tracemalloc

    count = 200_000
    index = np.stack(np.unravel_index(np.arange(count), (50, 40, 100)), axis=1)
    manifest = Manifest(index=index, address=np.arange(count) * 4096, nbytes=np.full(count, 4000))
    tracemalloc.start()
    try:
        nbytes = sum(map(len, encode_chunk_entries(("v/c/", "/", "/", ""), manifest, ["s3://bucket/" + "x" * 60])))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert nbytes > 20_000_000
    assert peak < 10_000_000

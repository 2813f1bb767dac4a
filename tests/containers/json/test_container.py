from __future__ import annotations

import json
from base64 import b64decode

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from h5zarr.containers.json.json_writing import chunk_entries
from h5zarr.zarr_model.hierarchy import Manifest

KEY_PARTS = st.sampled_from([("v/c/", "/", ""), ("100 %d of %s/", ".", ""), ('"ü{{u}}\\', "%", "%%")])
CONTENTS = st.sampled_from([b"", b"\0" * 8, b"base64:", b"\xff{{u}}"])


def inlined(inline: dict[tuple[int, ...], bytes], rank: int) -> Manifest:
    none = np.empty(0, np.int64)
    return Manifest(index=none.reshape(0, rank), address=none, nbytes=none, inline=inline)


@given(key_parts=KEY_PARTS, inline=st.dictionaries(st.tuples(*2 * [st.integers(0, 2**62)]), CONTENTS))
def test_inlined_chunks_are_in_the_order_of_the_array_under_any_name(
    key_parts: tuple[str, str, str], inline: dict[tuple[int, ...], bytes]
) -> None:
    entries = b"".join(chunk_entries(key_parts, inlined(inline, 2), []))
    found = json.loads(b"{" + entries.removeprefix(b",") + b"}")
    before, between, behind = key_parts
    keys = [f"{before}{one}{between}{other}{behind}" for one, other in sorted(inline)]
    assert list(found) == keys
    assert [b64decode(text.removeprefix("base64:")) for text in found.values()] == [inline[at] for at in sorted(inline)]


def test_many_chunks_that_are_the_same_are_all_there() -> None:
    inline = dict.fromkeys([(number,) for number in range(1000)], b"\x80\x01")
    entries = b"".join(chunk_entries(("v/", ""), inlined(inline, 1), []))
    assert json.loads(b"{" + entries.removeprefix(b",") + b"}") == {f"v/{n}": "base64:gAE=" for n in range(1000)}

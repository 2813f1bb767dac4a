from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h5zarr.errors import MalformedFile, PackageMissing, Unsupported
from h5zarr.filters import lzf
from h5zarr.filters.toolkit import load
from tests.filters.written import LZF, numbers, write

CONTENTS = st.binary(max_size=600) | st.lists(st.sampled_from([b"abc", b"\0" * 40, b"x"]), max_size=200).map(b"".join)


@settings(max_examples=60, deadline=None)
@given(content=CONTENTS)
def test_both_decoders_undo_the_encoder(content: bytes) -> None:
    encoded = lzf.encode(content, ())
    assert lzf.decode(encoded, (), len(content)) == content
    assert lzf._interpreted(encoded, len(content)) == content


def test_streams_are_decoded_without_imagecodecs(monkeypatch: pytest.MonkeyPatch) -> None:
    values = numbers((50, 30), "<i4")
    chunk = write(values, LZF)
    monkeypatch.setitem(sys.modules, "imagecodecs", None)
    assert lzf.decode(chunk.content, chunk.filters[0].values, chunk.nbytes) == values.tobytes()
    with pytest.raises(Unsupported, match="filter lzf needs the package imagecodecs"):
        lzf.encode(b"abc", ())


@settings(max_examples=60, deadline=None)
@given(content=st.binary(max_size=40))
def test_both_decoders_agree_on_any_stream(content: bytes) -> None:
    assert outcome(lambda: lzf._interpreted(content, 5000)) == outcome(lambda: lzf.decode(content, (), 1000))


def outcome(decode) -> bytes | str:
    try:
        return decode()
    except MalformedFile:
        return "malformed"


@pytest.mark.parametrize("stream", [b"\x1fabc", b"\x20", b"\xe0\x01", b"\x00a\x20\x05"])
def test_broken_streams_are_malformed(stream: bytes) -> None:
    with pytest.raises(MalformedFile):
        lzf._interpreted(stream, 1000)


@pytest.mark.parametrize("package", ["imagecodecs", "blosc2", "zfpy"])
def test_a_missing_package_says_how_to_install_it(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(Unsupported, match=f"filter some needs the package {package}") as caught:
        load(package, "some")
    assert caught.value.remedy == f"Install it: pip install {package}"
    assert isinstance(caught.value, PackageMissing)
    assert (caught.value.name, caught.value.kind) == (package, "unsupported")

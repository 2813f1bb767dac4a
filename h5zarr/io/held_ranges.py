"""A file of which every byte is in memory already: a scan reads small files whole."""

from __future__ import annotations

from h5zarr.io.failure import SHRUNK, source_error
from h5zarr.io.ranges import Column, Deliver
from h5zarr.io.span import Span
from h5zarr.io.url import display_url


class HeldRanges:
    """The content of a file, held for as long as it may be read."""

    is_near = True

    def __init__(self, url: str, content: memoryview) -> None:
        self.url = display_url(url)
        self._content = content

    @property
    def nbytes(self) -> int:
        return len(self._content)

    def read(self, address: Column, nbytes: Column, deliver: Deliver, *, is_light: bool = False) -> None:
        spans = list(map(Span, address.tolist(), nbytes.tolist()))
        for span in spans:
            if not 0 <= span.address <= span.end <= len(self._content):
                raise source_error(self.url, SHRUNK, span)
        deliver(range(len(spans)), [self._content[span.address : span.end] for span in spans])

    def read_whole(self) -> bytes:
        return bytes(self._content)

    def read_into(self, span: Span, out: memoryview) -> bool:
        return False

    def close(self) -> None:
        pass

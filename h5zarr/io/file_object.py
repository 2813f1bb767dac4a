"""Sources for binary files that the caller has opened."""

from __future__ import annotations

from typing import Protocol

from h5zarr.io.failure import FetchError, or_source_error
from h5zarr.io.location import Location
from h5zarr.io.network import USUAL_NETWORK, NetworkPolicy
from h5zarr.io.planned import PlannedSource
from h5zarr.io.source import Identity
from h5zarr.io.span import Span


class FileObject(Protocol):
    """The methods that h5zarr uses of an open file."""

    def seek(self, offset: int, whence: int = 0, /) -> int: ...

    def tell(self) -> int: ...

    def read(self, size: int = -1, /) -> bytes: ...


class FileObjectSource(PlannedSource):
    """An open binary file. It stays open. `url` is the name of the file in references and messages."""

    def __init__(self, file: FileObject, *, url: str, network: NetworkPolicy = USUAL_NETWORK) -> None:
        super().__init__(str(Location.parse(url)), network)
        self._file = file
        nbytes = or_source_error(self.url, self._network.timeout_seconds, self._measure)
        self._open(Identity(nbytes=nbytes))

    def _measure(self) -> int:
        try:
            self._file.seek(0, 2)
            return self._file.tell()
        except ValueError as error:
            raise _as_source_failure(error) from None

    def _request(self, spans: list[Span]) -> list[bytes]:
        return [self._read(span) for span in spans]

    def _read(self, span: Span) -> bytes:
        """Return the bytes of `span`. An unbuffered file may return them in several pieces."""
        pieces: list[bytes] = []
        left = span.nbytes
        self.log.requests += 1
        try:
            self._file.seek(span.address)
            while left and (piece := self._file.read(left)):
                pieces.append(piece)
                left -= len(piece)
        except Exception as error:
            raise FetchError(span, _as_source_failure(error)) from None
        self.log.nbytes += span.nbytes - left
        return b"".join(pieces)


def _as_source_failure(error: Exception) -> Exception:
    """Return `error`, with OSError in place of ValueError, which Python raises for a closed file."""
    return OSError(type(error).__name__) if isinstance(error, ValueError) else error

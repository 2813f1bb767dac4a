"""Harnesses for a coverage-guided fuzzer and for tests: functions that take bytes and return nothing.

`python -m tests.fuzz.guided` runs them with atheris.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from h5zarr.containers.json.json_reading import decode_references
from h5zarr.encode.encode import Encoding
from h5zarr.encode.inlining import Inlining
from h5zarr.errors import H5ZarrError
from h5zarr.filters.table import FILTERS
from h5zarr.filters.toolkit import most
from h5zarr.hdf5.file import read_file
from h5zarr.io.span import Span
from h5zarr.io.steps import run
from h5zarr.netcdf3.interpret import interpret_classic
from h5zarr.netcdf3.layout import read_classic
from tests.fuzz import seeds

Fuzz = Callable[[bytes], None]
_CHUNK_NBYTES = 4096


def _reader(content: bytes) -> Callable[[Sequence[Span]], list[memoryview]]:
    view = memoryview(content)

    def read_many(spans: Sequence[Span]) -> list[memoryview]:
        assert all(0 <= address <= address + nbytes <= len(view) for address, nbytes in spans), "read beyond the end"
        return [view[address : address + nbytes] for address, nbytes in spans]

    return read_many


def fuzz_hdf5(content: bytes, *, swallow: bool = True) -> None:
    """Scan an HDF5 file."""
    try:
        file = run(read_file("fuzzed", len(content)), _reader(content))
        if not swallow and file.problems:
            raise H5ZarrError(str(file.problems[0]))
    except H5ZarrError:
        if not swallow:
            raise


def fuzz_classic(content: bytes) -> None:
    """Translate a netCDF-3 file."""
    read_many = _reader(content)
    try:
        file = run(read_classic("fuzzed", len(content)), read_many)
        encoding = Encoding(interpret_classic(file, "fuzzed"), Inlining(), 64)
        for step in encoding.steps.values():
            run(step, read_many)
    except H5ZarrError:
        return


def fuzz_json(content: bytes) -> None:
    """Read references."""
    try:
        decode_references(content, "refs.json")
    except H5ZarrError:
        return


def fuzz_filter(number: int, content: bytes) -> None:
    """Undo a filter. The first byte is the number of client data values that follow, four bytes each."""
    count = content[0] % 24 if content else 0
    values = tuple(int.from_bytes(content[1 + 4 * place : 5 + 4 * place], "little") for place in range(count))
    try:
        plain = FILTERS[number].decode(content[1 + 4 * count :], values, _CHUNK_NBYTES)
    except H5ZarrError:
        return
    assert len(plain) <= most(_CHUNK_NBYTES)


def _json_corpus() -> Iterator[bytes]:
    import json

    return (json.dumps(document).encode() for document in seeds.json_seeds())


def _chunk_corpus(number: int) -> Iterator[bytes]:
    for seed in seeds.chunk_seeds():
        if seed.number == number and len(seed.values) < 24:
            values = b"".join(value.to_bytes(4, "little") for value in seed.values)
            yield bytes([len(seed.values)]) + values + seed.content


TARGETS: dict[str, tuple[Fuzz, Callable[[], Iterator[bytes]]]] = {
    "hdf5": (fuzz_hdf5, lambda: (seed.content for seed in seeds.hdf5_seeds())),
    "netcdf3": (fuzz_classic, lambda: (seed.content for seed in seeds.classic_seeds())),
    "references": (fuzz_json, _json_corpus),
    **{f"filter-{number}": (partial(fuzz_filter, number), partial(_chunk_corpus, number)) for number in FILTERS},
}

"""The files of references in Parquet: a row for each chunk of a record, with `path`, `offset`, `size` and `raw`.

fsspec reads them with fastparquet, which determines how they are written. A row without a chunk must have a real None
for its path. A JSON column gives None with every version of pandas; a text column may give NaN, which readers mistake
for a path. Numbers use plain encoding, because fastparquet supports few others.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from json.encoder import encode_basestring_ascii
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.containers.columns import (
    are_there,
    import_pyarrow,
    make_integers,
    make_texts,
    numbers_of,
    only_chunk,
)
from h5zarr.containers.records import Rows
from h5zarr.errors import MalformedFile
from h5zarr.io.ranges import Column
from h5zarr.zarr_model.hierarchy import TO_THE_END

_COLUMNS = ("path", "offset", "size", "raw")
_TOKEN = b"h5zarr"
_MOST_ROWS = 1 << 26
_BASE64 = b"base64:"  # readers decode bytes with this prefix


@dataclass(frozen=True, slots=True, eq=False)
class PartContent:
    """The content of a file. `rows` refer to `urls` by number; `token` names the container that h5zarr wrote it for."""

    rows: Rows
    urls: tuple[str, ...]
    token: str | None


def encode_part(rows: Rows, urls: Sequence[str], token: str) -> memoryview:
    """Return the bytes of a file with these rows, which refer to `urls` by number."""
    pyarrow = import_pyarrow()
    schema = pyarrow.schema(
        [
            pyarrow.field("path", pyarrow.json_()),
            pyarrow.field("offset", pyarrow.int64(), nullable=False),
            pyarrow.field("size", pyarrow.int64(), nullable=False),
            pyarrow.field("raw", pyarrow.large_binary()),
        ],
        metadata={_TOKEN: token.encode()},
    )
    rows = carry_empty(rows)
    # A whole file has no size in this layout.
    size = np.where(rows.nbytes == TO_THE_END, 0, rows.nbytes) if (rows.nbytes < 0).any() else rows.nbytes
    columns = [
        _encode_paths(pyarrow, rows, urls),
        make_integers(pyarrow, _scatter(rows, rows.address)),
        make_integers(pyarrow, _scatter(rows, size)),
        _encode_raw(pyarrow, rows.count, rows.inline),
    ]
    out = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(
        pyarrow.Table.from_arrays(columns, schema=schema),
        out,
        compression="zstd",
        use_dictionary=["path"],
        # Unless statistics say that no value is missing, fastparquet converts the numbers to floats, and rounds them.
        write_statistics=["offset", "size"],
        row_group_size=rows.count,
    )
    return memoryview(out.getvalue())


def carry_empty(rows: Rows) -> Rows:
    """Return `rows` with empty chunks inlined: readers take an address and size of 0 for a whole file."""
    is_empty = (rows.nbytes == 0) & (rows.address == 0)
    if not is_empty.any():
        return rows
    return replace(
        rows,
        place=rows.place[~is_empty],
        address=rows.address[~is_empty],
        nbytes=rows.nbytes[~is_empty],
        source=rows.source if isinstance(rows.source, int) else rows.source[~is_empty],
        inline={**rows.inline, **dict.fromkeys(rows.place[is_empty].tolist(), b"")},
    )


def with_token(content: bytes, token: str) -> bytes:
    """Return a file that belongs to another container: only the token at its end is different."""
    begin = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    own = decode_token(content)
    if begin < 0 or own is None or len(own) != len(token):
        raise MalformedFile("the footer of a file of references does not have h5zarr's form")
    return content[:begin] + content[begin:].replace(own.encode(), token.encode())


def _scatter(rows: Rows, column: Column) -> Column:
    """Return a column with a value for each row of a file: 0 if there is no chunk."""
    if len(column) == rows.count:
        return column
    made = np.zeros(rows.count, np.int64)
    made[rows.place] = column
    return made


def _encode_paths(pyarrow: Any, rows: Rows, urls: Sequence[str]) -> Any:
    if isinstance(rows.source, int):
        used, numbers = np.array([rows.source] * (len(rows.place) > 0), np.intp), np.zeros(0, np.intp)
    else:
        used, numbers = np.unique(rows.source, return_inverse=True)
    texts = [encode_basestring_ascii(urls[number]).encode() for number in used.tolist()]
    lengths = np.array([*map(len, texts)], np.int64)
    is_there = _are_there(rows.count, rows.place)
    if len(texts) < 2:
        all_lengths = np.where(is_there, lengths.sum(), 0)
        storage = make_texts(pyarrow, pyarrow.string(), all_lengths, b"".join(texts) * len(rows.place), is_there)
    else:
        which = np.zeros(rows.count, np.int64)
        which[rows.place] = numbers
        distinct = make_texts(pyarrow, pyarrow.string(), lengths, b"".join(texts))
        storage = distinct.take(make_integers(pyarrow, which, is_there))
    return pyarrow.ExtensionArray.from_storage(pyarrow.json_(), storage)


def _encode_raw(pyarrow: Any, count: int, inline: Mapping[int, bytes]) -> Any:
    place = np.array(sorted(inline), np.int64)
    contents = [_guard(inline[row]) for row in place.tolist()]
    lengths = np.zeros(count, np.int64)
    lengths[place] = [*map(len, contents)]
    return make_texts(pyarrow, pyarrow.large_binary(), lengths, b"".join(contents), _are_there(count, place))


def _guard(content: bytes) -> bytes:
    return _BASE64 + b64encode(content) if content.startswith(_BASE64) else content


def _are_there(count: int, place: Column) -> npt.NDArray[np.bool_]:
    made = np.zeros(count, np.bool_)
    made[place] = True
    return made


def decode_token(content: bytes) -> str | None:
    """Return the token of the container that a file belongs to."""
    pyarrow = import_pyarrow()
    try:
        found = (pyarrow.parquet.read_metadata(BytesIO(content)).metadata or {}).get(_TOKEN)
    except (pyarrow.ArrowException, OSError) as error:
        raise MalformedFile(f"a file of references cannot be read as Parquet: {error}") from error
    return None if found is None else found.decode()


def decode_part(content: bytes, count: int, name: str) -> PartContent:
    """Return the content of a file from any writer, as fsspec interprets it; at most `count` rows."""
    pyarrow = import_pyarrow()
    try:
        file = pyarrow.parquet.ParquetFile(BytesIO(content))
        if file.metadata.num_rows > _MOST_ROWS:
            raise MalformedFile(f"{name} has {file.metadata.num_rows} rows, which are more than h5zarr reads at a time")
        token = (file.metadata.metadata or {}).get(_TOKEN)
        table = file.read(columns=list(_COLUMNS), use_threads=False).slice(0, count)
        paths, offsets, sizes, raws = (only_chunk(table[column]) for column in _COLUMNS)
        raws = raws.cast(pyarrow.large_binary())
        is_inline = numbers_of(pyarrow, raws.is_valid()) > 0
        places = np.flatnonzero(is_inline)
        inline = dict(
            zip(places.tolist(), map(_unguard, raws.take(make_integers(pyarrow, places)).to_pylist()), strict=True)
        )
        urls, numbers = _decode_paths(pyarrow, paths)
        address, nbytes = (numbers_of(pyarrow, column) for column in (offsets, sizes))
    except (pyarrow.ArrowException, OSError, KeyError, ValueError) as error:
        raise MalformedFile(f"{name} cannot be read as Parquet: {error}") from error
    place = np.flatnonzero((numbers >= 0) & ~is_inline)
    address, nbytes, source = address[place], nbytes[place], numbers[place].astype(np.int32)
    if len(place) and (address.min() < 0 or nbytes.min() < 0 or (address > np.iinfo(np.int64).max - nbytes).any()):
        raise MalformedFile(f"{name}: an address or a number of bytes is impossible in a file")
    nbytes = np.where((address == 0) & (nbytes == 0), TO_THE_END, nbytes)
    rows = Rows(count=len(numbers), place=place, address=address, nbytes=nbytes, source=source, inline=inline)
    return PartContent(rows, urls, None if token is None else token.decode())


def _decode_paths(pyarrow: Any, paths: Any) -> tuple[tuple[str, ...], Column]:
    """Return the distinct URLs, and the number of each row's URL; -1 for none."""
    if not pyarrow.types.is_dictionary(paths.type):
        paths = paths.dictionary_encode()
    texts = [text.decode() if isinstance(text, bytes) else str(text) for text in paths.dictionary.to_pylist()]
    urls = tuple(json.loads(text) if text.startswith('"') else text for text in texts)
    return urls, np.where(are_there(paths), numbers_of(pyarrow, paths.indices), -1)


def _unguard(content: bytes | str) -> bytes:
    content = content if isinstance(content, bytes) else content.encode()
    return b64decode(content[len(_BASE64) :], validate=True) if content.startswith(_BASE64) else content

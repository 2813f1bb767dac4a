"""Targets of the fuzzer. Each takes damaged bytes, and returns what is wrong with the outcome, or None.

Raising an H5ZarrError is correct. Any other exception is a finding.
"""

from __future__ import annotations

import json
import random
from copy import deepcopy
from pathlib import Path
from typing import Any

from h5zarr.commands.translate.translate import translate
from h5zarr.containers.json.json_reading import decode_references
from h5zarr.containers.json.json_writing import write_json
from h5zarr.errors import H5ZarrError
from h5zarr.filters.table import FILTERS
from h5zarr.filters.toolkit import most
from h5zarr.io.urls import find_local_path
from h5zarr.opening import Opened, open_hierarchy
from h5zarr.read.decoding import find_decoder
from h5zarr.read.read_arrays import ArrayValues
from h5zarr.zarr_model.hierarchy import ArrayNode
from tests.fuzz.mutating import Seed, interesting, mutate
from tests.fuzz.seeds import ChunkSeed, ParquetSeed
from tests.roundtrip.hostile_worker import Sink, find_outside

_MOST_ARRAYS = 6
_MOST_PER_AXIS = 40
OUT_OF_MEMORY = "MemoryError"


def attack_file(content: bytes, path: str, number: int = 1) -> str | None:
    """Translate a file of either format; every fourth one to Zarr version 2."""
    Path(path).write_bytes(content)
    done = translate(path, zarr_format=2 if number % 4 == 0 else 3)
    write_json(done.fitted, done.provenance, Sink())
    starved = [str(problem) for problem in done.problems if OUT_OF_MEMORY in problem.message]
    return starved[0] if starved else find_outside(done)


def attack_json(content: bytes, path: str) -> str | None:
    """Read references, and some values through them if they refer to local files."""
    urls = decode_references(content, "refs.json").hierarchy.urls
    if not all(url and find_local_path(url) for url in urls):
        return None
    Path(path).write_bytes(content)
    return _read_some(open_hierarchy(path, verify=False))


def attack_parquet(files: dict[str, bytes], folder: str) -> str | None:
    """Read references in Parquet, and some values through them."""
    for name, content in files.items():
        place = Path(folder, name)
        place.parent.mkdir(exist_ok=True, parents=True)
        place.write_bytes(content)
    opened = open_hierarchy(folder, verify=False)
    if all(not url or find_local_path(url) for url in opened.hierarchy.urls):
        return _read_some(opened)
    return None


def _read_some(opened: Opened) -> str | None:
    """Read the first values of some arrays."""
    arrays = [(path, node) for path, node in opened.hierarchy.nodes.items() if isinstance(node, ArrayNode)]
    try:
        for path, node in arrays[:_MOST_ARRAYS]:
            decoder = find_decoder(node)
            if decoder is None or decoder.dtype.itemsize > 1000:
                continue
            chunk = [min(one, _MOST_PER_AXIS) for one in node.shape[:4]] + [min(one, 1) for one in node.shape[4:]]
            try:
                values = ArrayValues(path, node, decoder, opened.sources)[tuple(slice(0, one) for one in chunk)]
            except H5ZarrError as error:
                if OUT_OF_MEMORY in str(error):
                    return str(error)
                continue
            if values.shape != tuple(chunk):
                return f"{path}: {values.shape} instead of {tuple(chunk)}"
    finally:
        opened.close()
    return None


def attack_chunk(seed: ChunkSeed, content: bytes, values: tuple[int, ...]) -> str | None:
    """Undo a filter."""
    given = len(FILTERS[seed.number].decode(content, values, seed.nbytes))
    return f"{given} bytes where {most(seed.nbytes)} are the most" if given > most(seed.nbytes) else None


# --- damage to other inputs than files


def damage_json(document: Any, chance: random.Random) -> bytes:
    """Return a document of references with a few entries changed, or some of its bytes."""
    copy = deepcopy(document)
    for _ in range(chance.choice((1, 1, 2, 3))):
        if places := _places(copy):
            _change(copy, places, chance)
    if chance.random() < 0.5:
        refs = copy.get("refs")
        if isinstance(refs, dict):
            copy["refs"] = {key: json.dumps(one) if isinstance(one, dict) else one for key, one in refs.items()}
    content = json.dumps(copy).encode()
    if chance.random() < 0.2:
        content = mutate(Seed(name="", content=content, spans=((0, len(content)),)), chance)
    return content


_WORDS: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30, 0.5, 1e308, "", "x", "/", "."),
    *(
        "..",
        "\0",
        "\ud800",
        "NaN",
        "Infinity",
        "0xff",
        "<i4",
        ">f8",
        "|O",
        "|S3",
        "<U2",
        "|V5",
        "<M8[s]",
        "F",
        "base64:",
    ),
    *("base64:AAAA", "base64:=", "{{u}}", "{{ 1 }}", "bytes", "zstd", "numcodecs.zlib", "h5zarr.filter", "vlen-utf8"),
    *("sharding_indexed", "transpose", [], {}, [1], [0, 0], [[1]], {"name": "bytes"}, {"id": "zlib", "level": 1}),
)


def _change(document: Any, places: list[tuple[Any, Any]], chance: random.Random) -> None:
    container, key = chance.choice(places)
    way = chance.random()
    if way < 0.5:
        container[key] = deepcopy(chance.choice(_WORDS))
    elif way < 0.65:
        del container[key]
    elif way < 0.8 and isinstance(container[key], int) and not isinstance(container[key], bool):
        container[key] += chance.choice((-1, 1, 8, 1 << 20))
    else:
        other, place = chance.choice(places)
        container[key] = deepcopy(other[place]) if not _contains(other[place], container) else None


def _contains(value: Any, container: Any) -> bool:
    return value is container or any(one is container for one, _ in _places(value))


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        items = list(one.items()) if isinstance(one, dict) else list(enumerate(one)) if isinstance(one, list) else []
        found += [(one, key) for key, _ in items]
        waiting += [inner for _, inner in items]
    return found


def damage_parquet(seed: ParquetSeed, chance: random.Random) -> dict[str, bytes]:
    """Return the files of a directory with one of them damaged, removed or replaced by another."""
    files = dict(seed.files)
    name = chance.choice(sorted(files))
    content = files[name]
    if name == ".zmetadata" and chance.random() < 0.8:
        files[name] = damage_json(json.loads(content), chance)
    elif chance.random() < 0.1:
        files[name] = files[chance.choice(sorted(files))]
    else:
        tail = max(0, len(content) - 700)  # where a Parquet file says what is in it
        files[name] = mutate(Seed(name=name, content=content, spans=((0, 40), (tail, len(content)))), chance)
    return files


def damage_chunk(seed: ChunkSeed, chance: random.Random) -> tuple[bytes, tuple[int, ...]]:
    """Return the content of a chunk and the client data of its filter, one of them damaged, or both."""
    content, values = seed.content, list(seed.values)
    if chance.random() < 0.8:
        spans = ((0, min(40, len(content))), (0, len(content)))
        order = chance.choice(("little", "big"))
        content = mutate(Seed(name="", content=content, spans=spans, order=order), chance)
    if values and chance.random() < 0.4:
        width = Seed(name="", content=content, spans=())
        values[chance.randrange(len(values))] = interesting(4, width, chance)
    return content, tuple(values)

"""How many rounds, requests and bytes a translation takes from far away, exactly, for every sample.

`remote_rounds.json` has them. A change of the parser or of the plan may change it, on purpose: run this module with
`python -m tests.test_remote_rounds` to write it anew, and look at the difference.
"""

from __future__ import annotations

import json
from pathlib import Path

import fsspec
import h5py
import numpy as np
import pytest

from h5zarr.commands.translate.translate import translate
from h5zarr.errors import H5ZarrError
from tests.collections_of_files import sample_files
from tests.servers import RangeServer

EXPECTED = Path(__file__).with_name("remote_rounds.json")
# Samples are small, so they get a network in which that is much: a round trip is worth 4 kB, a request 200 bytes.
SLOW = {
    "latency_seconds": 0.02,
    "bytes_per_second": 200e3,
    "request_seconds": 0.001,
    "whole_seconds": 0,
    "whole_round_trips": 2,
    "block_nbytes": 1024,
    "first_read_nbytes": 2048,
}
LARGE = [path for path in sample_files() if path.stat().st_size > 16_000]


def measure(path: Path) -> list[int] | str:
    """Return rounds, requests and bytes; or why there are none."""
    fsspec.filesystem("memory").pipe("/sample", path.read_bytes())
    try:
        log = translate("memory://sample", network=SLOW).log
    except H5ZarrError as error:
        return error.kind
    return [log.rounds, log.requests, log.nbytes]


@pytest.mark.parametrize("path", LARGE, ids=lambda path: path.name)
def test_a_translation_takes_exactly_the_expected_rounds_requests_and_bytes(path: Path) -> None:
    assert measure(path) == json.loads(EXPECTED.read_text())[path.name]


def test_the_expected_files_are_those_of_the_samples() -> None:
    assert sorted(json.loads(EXPECTED.read_text())) == sorted(path.name for path in LARGE)


@pytest.mark.parametrize("path", LARGE[::5], ids=lambda path: path.name)
def test_a_server_counts_the_same(path: Path) -> None:
    with RangeServer({"/sample": path.read_bytes()}) as server:
        log = translate(server.url("/sample"), network=SLOW).log
        assert (log.requests, log.nbytes) == (len(server.counts.gets), server.counts.nbytes)
        assert server.counts.heads == 0
    expected = json.loads(EXPECTED.read_text())[path.name]
    # The beginning comes by itself, since it tells the size.
    assert log.rounds - expected[0] in (0, 1)
    assert log.requests - expected[1] in (0, 1)


@pytest.mark.parametrize("path", sample_files()[::7], ids=lambda path: path.name)
def test_a_sample_takes_one_request_in_a_usual_network(path: Path) -> None:
    with RangeServer({"/sample": path.read_bytes()}) as server:
        translate(server.url("/sample"), network={"latency_seconds": 0.03, "bytes_per_second": 100e6})
        assert server.counts.gets[0] == (0, path.stat().st_size - 1)
        assert server.counts.urls.count("/sample") == 1  # some name other files, which are not there


def store(path: Path, *, links_first: bool, libver: str) -> bytes:
    """Return a file with many links, and with 60 kB of values before or behind them."""
    with h5py.File(path, "w", libver=libver) as file:
        for part in (True, False) if links_first else (False, True):
            if part:
                for number in range(20):
                    file[f"small_{number}"] = np.arange(number)
            else:
                file["values"] = np.arange(15_000, dtype="f4")
            file.flush()  # before that, the library may place metadata in another order
    return path.read_bytes()


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_a_file_whose_links_are_not_at_its_beginning_is_read_whole_in_place_of_a_long_chain(
    libver: str, tmp_path: Path
) -> None:
    # Two round trips are worth 40 kB here, less than is left of the file behind its beginning; four of them 80 kB.
    policy = {
        "latency_seconds": 0.1,
        "bytes_per_second": 200e3,
        "whole_seconds": 0,
        "ahead_round_trips": 0,
        "ahead_per_use": 0,
        "first_read_nbytes": 20_000,
        "block_nbytes": 1024,
    }
    rounds = {}
    for links_first in (True, False):
        content = store(tmp_path / f"{links_first}.h5", links_first=links_first, libver=libver)
        assert 60_000 < len(content) < 100_000
        fsspec.filesystem("memory").pipe("/sample", content)
        log = translate("memory://sample", network=policy).log
        rounds[links_first] = log.rounds, log.nbytes == len(content)
    assert rounds[False] == (2, True)
    assert not rounds[True][1]


def deep(path: Path, libver: str) -> bytes:
    """Return a file with 64 groups, each four levels deep."""
    with h5py.File(path, "w", libver=libver) as file:
        for number in range(64):
            group = file.create_group(f"a{number // 8}/b{number % 8}/c/d")
            group["x"] = np.arange(400.0)
            group["x"].make_scale("x")
            for name in "uvwz":
                group.create_dataset(name, data=np.sin(np.arange(400.0)), chunks=(100,), compression="gzip")
                group[name].dims[0].attach_scale(group["x"])
                group[name].attrs.update({f"attribute_{one}": one for one in range(8)})
    return path.read_bytes()


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_the_rounds_for_one_group_follow_its_depth(libver: str, tmp_path: Path) -> None:
    fsspec.filesystem("memory").pipe("/sample", deep(tmp_path / "deep.h5", libver))
    whole, group = (translate("memory://sample", network=SLOW, group=one).log for one in ("/", "/a3/b5/c/d"))
    assert group.rounds <= 3 * 5  # for each level: header, links, and what they are stored in
    assert group.requests < whole.requests / 5
    assert group.nbytes < whole.nbytes / 10


if __name__ == "__main__":
    found = {path.name: measure(path) for path in LARGE}
    lines = [f"{json.dumps(name)}: {json.dumps(figures)}" for name, figures in found.items()]
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")

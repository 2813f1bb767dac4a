"""The effects of the reading options. Each function shows one effect, for any command."""

from __future__ import annotations

from typing import Any

import h5zarr
from tests.options.bench import Bench, Ran, arrays_in
from tests.options.files import READ_FILES, make_file, make_linked, serve
from tests.servers import Faults, RangeServer

ENDLESS = frozenset(range(1, 1000))


def storage_options(bench: Bench, command: str) -> None:
    """Every request has a header that the storage options contain."""
    with serve(bench) as served:
        ran = bench.run(command, served.place(command), storage_options={"headers": {"x-token": "mine"}})
        headers = served.server.counts.headers
    assert command == "status" or _is_done(command, ran)
    assert headers
    assert {one.get("x-token") for one in headers} == {"mine"}


def _is_done(command: str, ran: Ran) -> bool:
    """Return whether all was read. There is no index on the server, but its catalog is asked for."""
    return not ran.error and (command != "verify" or ran.told["right"])


def anon(bench: Bench, command: str) -> None:
    """No request to S3 is signed, although there are credentials."""
    assert _signatures(bench, command, anon=True) == {False}


def not_anon(bench: Bench, command: str) -> None:
    """Without the option, every request is signed."""
    assert _signatures(bench, command) == {True}


def _signatures(bench: Bench, command: str, **options: Any) -> set[bool]:
    bench.monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA1")
    bench.monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with serve(bench, "s3://bucket") as served:
        endpoint = {"endpoint_url": served.server.url("")}
        ran = bench.run(command, served.place(command), storage_options=endpoint, **options)
        assert command == "status" or _is_done(command, ran)
        return {"authorization" in one for one in served.server.counts.headers}


def network(bench: Bench, command: str) -> None:
    """A server that does not answer is given up after the stated timeout and attempts."""
    with serve(bench, faults=Faults(hang=ENDLESS)) as served:
        chosen = {"timeout_seconds": 0.2, "attempts": 1}
        ran = bench.run(command, served.place(command), network=chosen)
    assert "no answer within 0.2 seconds" in ran.error


def network_of_index(bench: Bench, command: str) -> None:
    """The first request is as long as stated. An index would ask a server that does not answer again, later."""
    with serve(bench) as served:
        assert not bench.run(command, served.place(command), network={"first_read_nbytes": 100}).error
        assert (0, 99) in served.server.counts.gets


def limits(bench: Bench, command: str) -> None:
    """An input that exceeds a limit is refused."""
    path = make_file(bench.folder / "file.h5")
    refs = bench.folder / "refs.json"
    h5zarr.translate(path, refs)
    source, chosen = (path, {"depth": 1}) if command in READ_FILES else (refs, {"references_nbytes": 10})
    assert "the limit is" in bench.run(command, source, limits=chosen).error
    assert not bench.run(command, source).error


def allow_links(bench: Bench, command: str) -> None:
    """A file in another directory is read only if allowed."""
    path = make_linked(bench.folder)
    assert "far" not in arrays_in(bench.write(command, path))
    assert "far" in arrays_in(bench.write(command, path, allow=[str(bench.folder)]))


def allow_links_in_check(bench: Bench, command: str) -> None:
    """A file in another directory is checked only if allowed."""
    path = make_linked(bench.folder)
    assert "/far" not in checked(bench, path)
    assert "/far" in checked(bench, path, allow=[str(bench.folder)])


def checked(bench: Bench, *places: object, **options: object) -> set[str]:
    """Return the paths of the variables that a check can virtualise."""
    (file,) = bench.run("check", *places, **options).told["files"]
    return {one["path"] for one in file["variables"] if one["verdict"] != "refused"}


def allow_local_files(bench: Bench, command: str) -> None:
    """References on a server lead to a local file only if allowed."""
    path = make_file(bench.folder / "file.h5")
    refs = bench.folder / "refs.json"
    h5zarr.translate(path, refs, inline_bytes=0)
    with RangeServer({"/refs.json": refs.read_bytes()}) as server:
        url = server.url("/refs.json")
        assert "name a file on this machine" in bench.run(command, url).error
        assert not bench.run(command, url, allow=[str(bench.folder)]).error


def at(bench: Bench, command: str) -> None:
    """A branch of an Icechunk repository is read if it exists."""
    repository = f"icechunk+file://{bench.folder}/repository"
    h5zarr.translate(make_file(bench.folder / "file.h5"), repository, branch="other")
    assert not bench.run(command, repository, at="other").error
    assert "no branch, tag or snapshot is named 'none'" in bench.run(command, repository, at="none").error


def at_once(bench: Bench, command: str) -> None:
    """One file after the other is read, or several at a time."""
    path = make_file(bench.folder / "file.h5")
    names = [f"/{number}.h5" for number in range(4)]
    most = []
    for count in (1, 4):
        with RangeServer(dict.fromkeys(names, path.read_bytes()), latency=0.05) as server:
            _read_several(bench, command, [server.url(name) for name in names], count)
            most.append(server.counts.max_in_flight)
    assert most[0] == 1 < most[1]


def _read_several(bench: Bench, command: str, urls: list[str], count: int) -> None:
    (bench.folder / "list.txt").write_text("\n".join(urls))
    outputs = {"index": [bench.folder / f"out-{count}"], "combine": [bench.folder / f"out-{count}.json"]}
    out = outputs.get(command, [])
    several: dict[str, Any] = {"index": {"workers": 1}, "combine": {"along": "run"}}.get(command, {})
    if bench.at_prompt:
        bench.prompt(command, *out, files_from=bench.folder / "list.txt", at_once=count, **several)
    elif command == "translate_many":
        assert all(outcome.error is None for outcome in h5zarr.translate_many(urls, at_once=count))
    else:
        getattr(h5zarr, command)(urls, *out, at_once=count, **several)

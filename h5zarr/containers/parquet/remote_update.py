"""Replace references in Parquet in an object store, where nothing can be renamed: readers see one state or the next.

A reader finds the files of an array by their plain names, `refs.0.parq`. Every file names the `.zmetadata` that it
belongs to by a token. If it belongs to another one, h5zarr's reader looks for the same file under a name with its own
token, `refs.0-TOKEN.parq`. So an update

1. copies the present files to names with their token, for readers that have opened this state;
2. writes the new files under names with their token;
3. writes `.zmetadata`, on condition that nobody else has: this is the moment at which the state changes;
4. copies the new files to their plain names, for fsspec's reader, which knows no other names;
5. removes files with tokens of earlier states that are older than a day.

An update that is killed before 3 has changed nothing that readers use. After 3, the next update does what is left of 4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from h5zarr.containers.container import Output
from h5zarr.containers.output import condition_of, or_output_error
from h5zarr.containers.parquet.parquet_writing import METADATA, token_of
from h5zarr.io.patience import call_patiently, patience

_PLAIN = re.compile(r".*/(?:refs\.\d+\.parq|files\.parquet)")
_TOKEN = re.compile(r".*/(?:refs\.\d+|files)-([0-9a-f]+)\.parq(?:uet)?")
_KEPT = timedelta(days=1)
_BATCH_NBYTES = 1 << 25


def name_with_token(name: str, token: str) -> str:
    """Return the name under which a file of references is also kept: `refs.0-TOKEN.parq`."""
    stem, dot, suffix = name.rpartition(".")
    return f"{stem}-{token}{dot}{suffix}"


class RemoteUpdate:
    """A sink that replaces the references at `root`. `names` are all files there, and `metadata` its `.zmetadata`."""

    def __init__(self, filesystem: Any, root: str, names: Iterable[str], metadata: bytes, output: Output) -> None:
        self._filesystem, self._root, self._output = filesystem, root, output
        self._names = set(names)
        self._old_token, self._token = token_of(metadata), ""
        self._waiting: dict[str, bytes] = {}
        self._written: list[str] = []
        self.shown = output.shown

    def start(self, token: str) -> None:
        """Keep the present state for its readers. `token` is that of the new one."""
        self._token = token
        plain = [name for name in self._names if _PLAIN.fullmatch(name)]
        self._give_plain_names(self._old_token)
        kept = {name: name_with_token(name, self._old_token) for name in plain}
        self._copy({name: other for name, other in kept.items() if other not in self._names})

    def _give_plain_names(self, token: str) -> None:
        """Give the files with a token their plain names, if another update has not done so, or has undone it."""
        mine = [name for name in self._names if (found := _TOKEN.fullmatch(name)) and found[1] == token]
        self._copy({name: name.replace(f"-{token}.", ".") for name in mine})

    def write_file(self, name: str, content: bytes | memoryview, /) -> None:
        if name == METADATA:
            self._flush()
            self._commit(bytes(content))
            return
        self._waiting[f"{self._root}/{name_with_token(name, self._token)}"] = bytes(content)
        self._written.append(f"{self._root}/{name}")
        if sum(map(len, self._waiting.values())) >= _BATCH_NBYTES:
            self._flush()

    def _act(self, what: str, *arguments: Any, nbytes: int = 0, **how: Any) -> Any:
        seconds = patience(self._output.network.timeout_seconds, nbytes)
        act: Callable[[], Any] = partial(call_patiently, self._filesystem, what, *arguments, seconds=seconds, **how)
        return or_output_error(act, self.shown, seconds)

    def _flush(self) -> None:
        if self._waiting:
            for above in dict.fromkeys(path.rpartition("/")[0] for path in self._waiting):
                self._act("makedirs", above, exist_ok=True)
            self._act("pipe", self._waiting, nbytes=sum(map(len, self._waiting.values())))
        self._waiting = {}

    def _copy(self, names: dict[str, str]) -> None:
        for name, other in names.items():
            self._act("cp_file", name, other)

    def _commit(self, content: bytes) -> None:
        """Change the state, and then the plain names."""
        how = condition_of(self._filesystem, self._output.replaces, len(content))
        self._act("pipe_file", f"{self._root}/{METADATA}", content, nbytes=len(content), **how)
        self._copy({name_with_token(name, self._token): name for name in self._written})
        new = {*self._written, f"{self._root}/{METADATA}"}
        for name in [one for one in self._names if _PLAIN.fullmatch(one) and one not in new]:
            self._act("rm_file", name)
        # If another update has passed this one, its files have the plain names.
        newest = token_of(self._act("cat_file", f"{self._root}/{METADATA}"))
        if newest != self._token:
            self._filesystem.invalidate_cache()
            self._names = set(self._act("find", self._root))
            self._give_plain_names(newest)
        self._sweep()

    def _sweep(self) -> None:
        """Remove files of states that nobody can have opened lately."""
        for name in self._names:
            found = _TOKEN.fullmatch(name)
            if found is None or found[1] in (self._token, self._old_token):
                continue
            changed = self._act("info", name).get("LastModified")
            if isinstance(changed, datetime) and datetime.now(UTC) - changed > _KEPT:
                self._act("rm_file", name)

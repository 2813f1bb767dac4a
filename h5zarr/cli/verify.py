"""`h5zarr verify`: are references right, today?"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from h5zarr.cli.common import (
    DONE,
    DONE_WITH_PROBLEMS,
    NOTHING,
    add_allow,
    add_limits,
    add_storage_options,
    complain,
    positive,
    source_limits,
    source_options,
    tell,
    write_lines,
)
from h5zarr.cli.outputs import write_report

if TYPE_CHECKING:
    from h5zarr.verifying.arrays import Verified
    from h5zarr.verifying.verify import Verification

HELP = """\
Compare what Zarr reads through references with what h5py, or netCDF4, reads from the file itself: shapes, types, names
of dimensions, attributes, fill values, and the values of all chunks, or of a sample of them.

A file that is not the one that the references were made of is noticed first.
"""
EXAMPLES = """\
examples:
  h5zarr verify ocean.json                          everything
  h5zarr verify ocean.parquet --sample 0.05         one chunk in twenty, and always the first, the last, those at the
                                                    edges, some that are missing and some that are inlined
  h5zarr verify ocean.json /copies/ocean.nc         compare with a copy of the file
  h5zarr verify s3://refs/ocean.json --anon --report verified.json
  h5zarr verify ocean.json --workers 4              in four processes: what is found is the same

exit codes:
  0    everything that was compared is right
  1    something is not: see the differences
  2    nothing could be compared, or the command line is wrong
  143  stopped by SIGTERM, 130 by Ctrl-C
"""


def add_verify(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `verify` command."""
    parser = commands.add_parser(
        "verify",
        help="compare references with the file that they are of",
        description=HELP,
        epilog=EXAMPLES,
        usage="h5zarr verify [OPTION ...] REFS [SOURCE]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "places",
        nargs="+",
        metavar="REFS SOURCE",
        help="REFS: references in JSON or Parquet; SOURCE: the file to compare with, if not the one that they were "
        "made of. Both are paths, or URLs that fsspec can open",
    )
    parser.add_argument("--sample", type=_share, metavar="SHARE", help="compare this share of the chunks, such as 0.05")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="which sample (default 0)")
    parser.add_argument("--group", default="/", metavar="PATH", help="the group of SOURCE that is the root of REFS")
    parser.add_argument(
        "--workers",
        type=positive,
        metavar="N",
        help="processes that compare values (default: one for each processor where there is much to compare, else 1, "
        "which is this one)",
    )
    parser.add_argument("--report", metavar="FILE", help="write what was found, as JSON; - is standard output")
    parser.add_argument("--quiet", action="store_true", help="say nothing but differences")
    reading = parser.add_argument_group("reading")
    add_storage_options(reading)
    add_allow(reading, "let REFS from elsewhere refer to files")
    add_limits(reading)
    parser.set_defaults(command=verify)


def verify(arguments: argparse.Namespace) -> int:
    """Compare, and say what differs."""
    from h5zarr.errors import H5ZarrError

    if len(arguments.places) > 2:
        tell(["h5zarr: give REFS, and perhaps SOURCE", "  h5zarr verify --help shows examples."])
        return NOTHING
    arguments.references, arguments.source = [*arguments.places, None][:2]
    progress = _Progress(is_shown=not arguments.quiet and sys.stderr.isatty())
    try:
        with _terminable():
            found = _run(arguments, progress)
    except H5ZarrError as error:
        return complain(arguments.references, str(error), error.remedy)
    except ImportError as error:
        return complain(arguments.references, f"a package is missing: {error.name}")
    except _Terminated:
        return 128 + signal.SIGTERM
    finally:
        progress.wipe()
    _tell(found, quiet=arguments.quiet)
    write_report(arguments, found.to_json())
    return DONE if found.is_right else DONE_WITH_PROBLEMS


def _run(arguments: argparse.Namespace, progress: _Progress) -> Verification:
    from h5zarr.verifying.verify import verify as run

    return run(
        arguments.references,
        arguments.source,
        sample=arguments.sample,
        seed=arguments.seed,
        group=arguments.group,
        storage_options=source_options(arguments.source or arguments.references, arguments),
        allow=tuple(arguments.allow),
        limits=source_limits(arguments),
        workers=arguments.workers,
        on_array=progress.show,
    )


def _tell(found: Verification, *, quiet: bool) -> None:
    from h5zarr.inspect.escape import readable

    lines = [readable(found.changed)] if found.changed else []
    for one in (*found.groups, *found.arrays):
        lines += [f"{readable(one.path)}: {readable(difference)}" for difference in one.differences]
        lines += [f"{readable(one.path)}: {readable(one.error)}"] if one.error else []
    lines += [f"{readable(path)}: there is no such dataset in {readable(found.source)}" for path in found.not_found]
    tell(lines)
    if quiet or found.changed:
        return
    write_lines(_verified_line(one) for one in found.arrays)
    write_lines([_summary(found)])


def _verified_line(one: Verified) -> str:
    from h5zarr.inspect.escape import readable

    if one.skipped:
        return f"{readable(one.path)}: values not compared: {readable(one.skipped)}"
    words = "verified" if one.is_right else "differs after"
    return f"{readable(one.path)}: {words} {one.compared:,} of {one.total:,} chunks"


def _summary(found: Verification) -> str:
    from h5zarr.inspect.quantities import counted

    wrong = sum(not one.is_right for one in found.arrays)
    skipped = sum(bool(one.skipped) for one in found.arrays)
    chunks = sum(one.compared for one in found.arrays)
    parts = [f"{counted(len(found.arrays) - wrong - skipped, 'array')} right", f"{wrong:,} wrong"]
    parts += [f"{skipped:,} not compared"] if skipped else []
    return f"{', '.join(parts)} · {counted(chunks, 'chunk')} compared with {found.library} · {found.seconds:.2f} s"


class _Terminated(BaseException):
    """SIGTERM came. Like Ctrl-C, it is no error that somebody might record and go on."""


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end what is done here as Ctrl-C does, so that nothing is left behind."""

    def end(number: int, frame: FrameType | None) -> None:
        raise _Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Progress:
    """A line that shows how many arrays are done."""

    def __init__(self, *, is_shown: bool) -> None:
        self._is_shown = is_shown
        self._done = 0

    def show(self, array: Verified, count: int) -> None:
        self._done += 1
        if self._is_shown:
            sys.stderr.write(f"\r\x1b[K{self._done:,} of {count:,} arrays, {array.path[-60:]}")
            sys.stderr.flush()

    def wipe(self) -> None:
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share above 0 and up to 1")
    return share

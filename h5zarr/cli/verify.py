"""`h5zarr verify`: do references still read the same values as the file?"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from h5zarr.cli.common import DONE, DONE_WITH_PROBLEMS, NOTHING, complain_of, complain_of_output, tell, write_lines
from h5zarr.cli.options import OPENING, add_allow, add_opening, add_overwrite, add_reporting, keywords, positive
from h5zarr.cli.outputs import check_report, write_report

HELP = """\
Compare what Zarr reads through references with what h5py or netCDF4 reads from the file: shapes, types, dimension
names, attributes, fill values, and the values of all chunks or of a sample.

First checks that the file has not changed since the references were made.
"""
EXAMPLES = """\
examples:
  h5zarr verify ocean.json                          everything
  h5zarr verify ocean.parquet --sample 0.05         one chunk in twenty, and always the first, the last, some at the
                                                    edges, some missing and some inlined ones
  h5zarr verify ocean.json /copies/ocean.nc         compare with a copy of the file
  h5zarr verify s3://refs/ocean.json --anon --report verified.json
  h5zarr verify ocean.json --workers 4              in four processes, with the same result

exit codes:
  0    everything that was compared is equal
  1    something differs: see the differences
  2    nothing could be compared, or the command line is wrong
  143  stopped by SIGTERM (130 by Ctrl-C)
"""


def add_verify(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `verify` command."""
    parser = commands.add_parser(
        "verify",
        help="compare references with their source file",
        description=HELP,
        epilog=EXAMPLES,
        usage="h5zarr verify [OPTION ...] REFS [SOURCE]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "places",
        nargs="+",
        metavar="REFS SOURCE",
        help="REFS: references in any container; SOURCE: the file to compare with (default: the one they were made "
        "from). Both can be paths or URLs that fsspec opens",
    )
    parser.add_argument(
        "--sample", type=_share, metavar="SHARE", help="compare only this fraction of the chunks, such as 0.05"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="random seed of the sample (default 0)")
    parser.add_argument("--group", default="/", metavar="PATH", help="the group of SOURCE that is the root of REFS")
    parser.add_argument(
        "--workers",
        type=positive,
        metavar="N",
        help="processes that compare values (default: one per processor if there is much to compare, else 1)",
    )
    add_overwrite(parser, "FILE")
    add_reporting(parser, "print only differences")
    reading = parser.add_argument_group("reading")
    add_opening(reading)
    add_allow(reading, "let remote REFS refer to files")
    parser.set_defaults(command=verify)


def verify(arguments: argparse.Namespace) -> int:
    """Compare, and say what differs."""
    from h5zarr.cli.progress import CountLine
    from h5zarr.commands.verify.verification_text import difference_lines, verified_lines
    from h5zarr.commands.verify.verify import verify as run
    from h5zarr.errors import H5ZarrError, OutputError

    if len(arguments.places) > 2:
        tell(["h5zarr: give REFS and at most one SOURCE", "  h5zarr verify --help shows examples."])
        return NOTHING
    references, source = [*arguments.places, None][:2]
    progress = CountLine("arrays", is_shown=not arguments.quiet and sys.stderr.isatty())
    chosen = keywords(arguments, *OPENING, "allow", "sample", "seed", "group", "workers")
    try:
        check_report(arguments, *arguments.places)
        with _terminable():
            found = run(references, source, on_array=lambda array, count: progress.show(array.path, count), **chosen)
    except OutputError as error:
        return complain_of_output(error)
    except H5ZarrError as error:
        return complain_of(references, error)
    except _Terminated:
        return 128 + signal.SIGTERM
    finally:
        progress.wipe()
    tell(difference_lines(found))
    if not arguments.quiet:
        write_lines(verified_lines(found))
    write_report(arguments, found.to_json())
    return DONE if found.is_right else DONE_WITH_PROBLEMS


class _Terminated(BaseException):
    """SIGTERM arrived. Like KeyboardInterrupt, this is not an Exception that other code might catch."""


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM stop the work as Ctrl-C does, so that worker processes end, too."""

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


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share between 0 and 1")
    return share

"""`h5zarr status`: what the catalog of an index says."""

from __future__ import annotations

import argparse
import json

from h5zarr.cli.common import DONE, DONE_WITH_PROBLEMS, NOTHING, complain, storage_option, tell, write_lines

HELP = """\
Show what the catalog of an index says: how many sources are indexed, and which are not, with the reasons.
"""
EXAMPLES = """\
examples:
  h5zarr status s3://refs/ocean/ --storage-option profile=research
  h5zarr status refs/ --json | jq .failed

status:
  indexed   there are references, of the source as it was when it was last seen
  failed    there are none, for the reason that is shown
  stale     there are references of an earlier state: the source has changed since, and could not be read again
  vanished  there are references, but the source was not found any more: `h5zarr index --prune` removes them

exit codes:
  0  all sources are indexed
  1  some are not
  2  there is no index, or it cannot be read
"""
_SHOWN = 20


def add_status(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `status` command."""
    parser = commands.add_parser(
        "status",
        help="show what the catalog of an index says",
        description=HELP,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", metavar="OUT", help="the directory of an index, a path or a URL")
    parser.add_argument(
        "--storage-option",
        action="append",
        default=[],
        type=storage_option,
        metavar="KEY=VALUE",
        help="passed on to the file system of fsspec. May be repeated",
    )
    parser.add_argument("--json", action="store_true", help="all of it, as JSON")
    parser.set_defaults(command=status)


def status(arguments: argparse.Namespace) -> int:
    """Show what the catalog says."""
    from h5zarr.errors import H5ZarrError
    from h5zarr.indexing.place import Place

    place = Place(arguments.out, dict(arguments.storage_option))
    try:
        from h5zarr.indexing.summary import describe, read_summary, summary_lines

        summary = read_summary(place)
    except H5ZarrError as error:
        return complain(arguments.out, str(error), error.remedy)
    except ImportError as error:
        return complain(arguments.out, f"a package is missing: {error.name}", 'pip install "h5zarr[index]"')
    if summary is None:
        tell([f"h5zarr: {place.shown}: there is no index", "  Make one with h5zarr index."])
        return NOTHING
    lines = [json.dumps(describe(summary), indent=2)] if arguments.json else summary_lines(summary, most=_SHOWN)
    write_lines(lines)
    return DONE_WITH_PROBLEMS if summary.others else DONE

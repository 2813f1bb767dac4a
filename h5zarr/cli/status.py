"""`h5zarr status`: summarise the catalog of an index."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from h5zarr.cli.common import DONE, DONE_WITH_PROBLEMS, NOTHING, complain, phrase, require_index, tell, write_lines
from h5zarr.cli.options import add_config, add_location, add_network, keywords

if TYPE_CHECKING:
    from h5zarr.cli.config_file import Collection
    from h5zarr.commands.status.status import Summary

HELP = """\
Summarise the catalog of an index: how many sources are in each state, and which need attention, with the reasons.
"""
EXAMPLES = """\
examples:
  h5zarr status s3://refs/ocean/ --storage-options profile=research
  h5zarr status refs/ --all
  h5zarr status refs/ --json | jq .failed
  h5zarr status --config archive.toml                           all collections of an archive

states:
  indexed                the references are up to date
  indexed with problems  the same, but parts of the source are left out: the problems name them
  failed                 there are no references; the reason is shown
  stale                  the source could not be indexed again after a change: the references are outdated
  vanished               the source is gone; it stays in the index until `h5zarr index --prune`

exit codes:
  0  all sources are indexed, with or without problems
  1  some sources are failed, stale or vanished
  2  there is no index, or it cannot be read
  With --config: the highest exit code of all collections.
"""


def add_status(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `status` command."""
    parser = commands.add_parser(
        "status",
        usage="h5zarr status [OPTION ...] OUT\n       h5zarr status [OPTION ...] --config FILE",
        help="summarise the catalog of an index",
        description=HELP,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", metavar="OUT", help="the directory of an index, as a path or URL")
    add_config(parser, "summarise")
    add_location(parser)
    add_network(parser)
    parser.add_argument("--all", action="store_true", help="list every source that needs attention, and every reason")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.set_defaults(command=status)


def status(arguments: argparse.Namespace) -> int:
    """Print the summary of an index, or of all collections of a file, and return the exit code."""
    if not arguments.config and not arguments.collection:
        summary = _summarise(arguments.out, keywords(arguments, "storage_options", "anon", "network"))
        if summary is None:
            return NOTHING
        _print(arguments, [(None, summary)])
        return DONE if summary.is_good else DONE_WITH_PROBLEMS
    from h5zarr.cli.index_config import ConfigError, read_archive
    from h5zarr.display import readable

    try:
        if arguments.out is not None:
            raise ConfigError("give either --config or OUT: with --config, the file names it")
        collections = read_archive(arguments)
    except ConfigError as error:
        tell(f"h5zarr: {readable(line)}" for line in str(error).splitlines())
        return NOTHING
    found = [(one.name, _summarise(str(one.values["out"]), _access(arguments, one))) for one in collections]
    _print(arguments, found)
    codes = [NOTHING if one is None else DONE if one.is_good else DONE_WITH_PROBLEMS for _, one in found]
    return max(codes)


def _access(arguments: argparse.Namespace, collection: Collection) -> dict[str, Any]:
    """Return how to read the index of a collection: as it is written, unless the user says otherwise."""
    given = keywords(arguments, "storage_options", "anon", "network")
    for name, of_file in (("storage_options", "output_options"), ("network", "network")):
        given[name] = {**collection.values.get(of_file, {}), **given[name]}
    return given


def _summarise(out: str, access: dict[str, Any]) -> Summary | None:
    """Return the summary of an index; None, after a message, if there is none."""
    from h5zarr.errors import H5ZarrError
    from h5zarr.io.location import Location

    try:
        require_index((), out, str(Location.parse(out)), is_dask=False)
        from h5zarr.commands.status.status import status as run

        return run(out, **access)
    except H5ZarrError as error:
        place, _, what = str(error).partition(": ")  # the directory, or a file in it
        complain(place, what, error.remedy)
        return None


def _print(arguments: argparse.Namespace, found: Sequence[tuple[str | None, Summary | None]]) -> None:
    """Print summaries, each with the name of its collection if it has one. In JSON, one that is missing is null."""
    from h5zarr.commands.status.status import summary_lines

    if arguments.json:
        documents = {name: summary and summary.to_json() for name, summary in found}
        write_lines([json.dumps(documents.get(None, documents), indent=2)])
        return
    is_short = False
    for number, (name, summary) in enumerate((name, one) for name, one in found if one is not None):
        lines = list(summary_lines(summary, show_all=arguments.all, phrase=phrase))
        is_short |= lines != list(summary_lines(summary, show_all=True, phrase=phrase))
        write_lines([*([""] if number else []), *([f"{name}:"] if name else []), *lines])
    write_lines(["", "--all shows everything."] if is_short else [])

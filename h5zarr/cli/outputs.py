"""What the commands that write references share: options for the output, and the report."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from h5zarr.cli.common import complain, storage_option

if TYPE_CHECKING:
    from h5zarr.icechunk.commit import Commit


def add_output_options(form: argparse._ArgumentGroup) -> None:
    """Add the options for the place that is written to."""
    form.add_argument(
        "--output-option",
        action="append",
        default=[],
        type=storage_option,
        metavar="KEY=VALUE",
        help="as --storage-option, for OUT",
    )
    form.add_argument("--branch", help="the branch of an Icechunk repository, made if it is not there (default main)")
    form.add_argument("--message", help="what to say of the snapshot in an Icechunk repository")


def add_report_options(group: argparse._ArgumentGroup) -> None:
    """Add the options for what is said at the end."""
    group.add_argument("--report", metavar="FILE", help="write what happened, as JSON; - is standard output")
    group.add_argument("--quiet", action="store_true", help="say nothing but problems")


def chosen_commit(arguments: argparse.Namespace) -> Commit | None:
    from h5zarr.icechunk.commit import Commit

    if arguments.branch is None and arguments.message is None:
        return None
    return Commit(branch=arguments.branch or Commit().branch, message=arguments.message)


def check_report(arguments: argparse.Namespace) -> None:
    """Raise where the report would stand in the place of what is read or written."""
    from h5zarr.errors import OutputError
    from h5zarr.io.url import display_url
    from h5zarr.refs.output import check_output

    if not arguments.report:
        return
    place = arguments.report
    arguments.report = None  # until it is known to be harmless
    check_output(place, arguments.source)
    if place == arguments.out:
        raise OutputError(
            display_url(place), "references and report cannot both be written there", remedy="Give two names."
        )
    arguments.report = place


def write_report(arguments: argparse.Namespace, report: dict[str, Any]) -> None:
    """Write the report, where one is asked for; a job that failed leaves one too, not that of the day before."""
    write_text(arguments.report, json.dumps(report, indent=2) + "\n")


def write_text(place: str | None, text: str) -> None:
    """Write text to a path or URL, if there is one, or say why that cannot be done."""
    from h5zarr.errors import OutputError
    from h5zarr.refs.output import open_output

    if not place:
        return
    try:
        with open_output(place) as sink:
            sink.write(text.encode())
    except OutputError as error:
        complain(place, str(error), error.remedy)

"""Where the commands write their reports."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from h5zarr.cli.common import complain

if TYPE_CHECKING:
    from h5zarr.errors import H5ZarrError
    from h5zarr.io.location import Location


def check_report(arguments: argparse.Namespace) -> None:
    """Raise OutputError if the report would overwrite what is read or written."""
    from h5zarr.containers.output import check_output
    from h5zarr.errors import OutputError
    from h5zarr.io.location import Location

    if not arguments.report:
        return
    place = arguments.report
    arguments.report = None  # until it is known to be safe
    check_output(place, arguments.source)
    if place == arguments.out:
        what = "references and report have the same name"
        raise OutputError(str(Location.parse(place)), what, remedy="Give them different names.")
    arguments.report = place


def write_report(arguments: argparse.Namespace, report: dict[str, Any]) -> None:
    """Write the report, if the user wants one. A job that failed writes one, too, so that no old report remains."""
    write_text(arguments.report, json.dumps(report, indent=2) + "\n")


def describe_failure(source: Location, error: H5ZarrError) -> dict[str, Any]:
    """Return the report for machines of a translation that wrote nothing."""
    return {
        "source": str(source),
        "error": {"kind": error.kind, "message": str(error), "remedy": error.remedy},
        "problems": [problem.to_json() for problem in getattr(error, "problems", ())],
    }


def write_text(place: str | None, text: str) -> None:
    """Write text to `place`, if it is given, or say why that fails."""
    from h5zarr.containers.output import open_output
    from h5zarr.errors import OutputError

    if not place:
        return
    try:
        with open_output(place) as sink:
            sink.write(text.encode())
    except OutputError as error:
        complain(place, str(error), error.remedy)


def output_format(text: str) -> str:
    """Return the name of a format. The registry is loaded only now: --help needs no numpy."""
    from h5zarr.containers.registry import output_formats

    if text not in (known := output_formats()):
        raise argparse.ArgumentTypeError(f"invalid choice: {text!r} (choose from {', '.join(known)})")
    return text

"""Where the commands write their reports."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from h5zarr.cli.common import complain
from h5zarr.cli.parsing import suggestion

if TYPE_CHECKING:
    from h5zarr.errors import H5ZarrError
    from h5zarr.io.location import Location

Complain: TypeAlias = Callable[[str, str, str], object]
REPORT = "h5zarr_report"  # the first key of every report, by which h5zarr recognises its own


def check_report(arguments: argparse.Namespace, *places: str) -> None:
    """Raise OutputError if the report or the metrics may not be written; `places` are read or written otherwise.

    After an OutputError nothing is written there.
    """
    given = {option: place for option in _RECOGNISE if (place := getattr(arguments, option, None))}
    for option in given:
        setattr(arguments, option, None)  # until all are known to be safe
    others = [*places, *([arguments.out] if getattr(arguments, "out", None) else ())]
    for option, place in given.items():
        _check_text(option, place, others, overwrite=arguments.overwrite)
        others.append(place)
    for option, place in given.items():
        setattr(arguments, option, place)


def _check_text(option: str, place: str, others: Sequence[str], *, overwrite: bool) -> None:
    """Raise OutputError if a report or metrics would replace one of `others`, or anything that is neither."""
    from h5zarr.containers.container import Content, Output
    from h5zarr.containers.output import check_output
    from h5zarr.containers.target import check_target, file_state
    from h5zarr.errors import OutputError
    from h5zarr.io.location import Location

    location = Location.parse(place)
    for other in others:
        if place == other:
            what = f"this command also reads or writes it, so it cannot be the file of --{option}"
            raise OutputError(str(location), what, remedy="Give another name.")
        check_output(location, Location.parse(other))

    def recognise(head: bytes, read_all: Callable[[], bytes]) -> Content:
        return Content.OWN if _RECOGNISE[option](head) else Content.OTHER

    check_target(Output(location=location, overwrite=overwrite), file_state(location, None, recognise))


def _is_report(head: bytes) -> bool:
    from h5zarr.containers.compression import peek

    return "".join(peek(head, 100).decode("utf-8", "replace").split()).startswith(f'{{"{REPORT}":')


def _is_metrics(head: bytes) -> bool:
    return head.startswith(b"# HELP h5zarr_")


_RECOGNISE: dict[str, Callable[[bytes], bool]] = {"report": _is_report, "metrics": _is_metrics}


def write_report(arguments: argparse.Namespace, report: dict[str, Any], complain: Complain = complain) -> None:
    """Write the report, if the user wants one. A job that failed writes one, too, so that no old report remains."""
    name = arguments.command.__name__
    write_text(arguments.report, json.dumps({REPORT: name, **report}, indent=2) + "\n", complain)


def describe_failure(source: Location, error: H5ZarrError) -> dict[str, Any]:
    """Return the report for machines of a translation that wrote nothing."""
    return {
        "source": str(source),
        "error": {"kind": error.kind, "message": str(error), "remedy": error.remedy},
        "problems": [problem.to_json() for problem in getattr(error, "problems", ())],
    }


def write_text(place: str | None, text: str, complain: Complain = complain) -> None:
    """Write text to `place`, if it is given, or say why that fails: `complain` gets place, message and remedy."""
    from h5zarr.containers.output import open_output
    from h5zarr.errors import OutputError
    from h5zarr.io.location import Location

    if not place:
        return
    try:
        with open_output(Location.parse(place)) as sink:
            sink.write(text.encode())
    except OutputError as error:
        complain(place, str(error), error.remedy)


def output_format(text: str) -> str:
    """Return the name of a format. The containers are loaded only now: --help needs no numpy."""
    from h5zarr.commands.index.output_formats import output_formats

    if text not in (known := output_formats()):
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(known)}{suggestion(text, known)}")
    return text

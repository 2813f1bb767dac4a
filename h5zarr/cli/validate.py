"""`h5zarr validate`: do references follow the specifications?"""

from __future__ import annotations

import argparse

from h5zarr.cli.common import (
    DONE,
    DONE_WITH_PROBLEMS,
    NOTHING,
    complain_of,
    complain_of_output,
    phrase,
    tell,
    write_lines,
)
from h5zarr.cli.options import OPENING, add_opening, add_overwrite, add_reporting, keywords
from h5zarr.cli.outputs import check_report, write_report

HELP = """\
Check references against the rules of Zarr version 3 or 2, the _FillValue attribute, the Xarray-Zarr convention, the
reference format itself, and optionally NZ-1.0.

Reads only REFS, not the files they refer to.
"""
EXAMPLES = """\
examples:
  h5zarr validate ocean.json
  h5zarr validate ocean.parquet --nz                also the rules of NZ-1.0
  h5zarr validate s3://refs/ocean.json.zst --anon --report validated.json
  h5zarr validate ocean.json --report - --quiet     only the JSON report

exit codes:
  0  no errors; there may be warnings
  1  a MUST rule is violated
  2  the references could not be read, or the command line is wrong
"""


def add_validate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `validate` command."""
    parser = commands.add_parser(
        "validate",
        help="check references against the rules of Zarr, xarray and NZ-1.0",
        description=HELP,
        epilog=EXAMPLES,
        usage="h5zarr validate [OPTION ...] REFS",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "places",
        nargs="+",
        metavar="REFS",
        help="references in JSON (also .gz or .zst) or Parquet: a path, or a URL that fsspec opens",
    )
    parser.add_argument("--nz", action="store_true", help="also check the NZ-1.0 convention")
    add_overwrite(parser, "FILE")
    add_reporting(parser, "print only errors")
    add_opening(parser.add_argument_group("reading"))
    parser.set_defaults(command=validate)


def validate(arguments: argparse.Namespace) -> int:
    """Validate, and say what is found."""
    from h5zarr.commands.validate.validate import validate as run
    from h5zarr.commands.validate.validation_text import finding_lines, validation_summary
    from h5zarr.errors import H5ZarrError, OutputError

    if len(arguments.places) > 1:
        tell(["h5zarr: give one REFS", "  h5zarr validate --help shows examples."])
        return NOTHING
    (references,) = arguments.places
    try:
        check_report(arguments, *arguments.places)
        found = run(references, **keywords(arguments, *OPENING, "nz"))
    except OutputError as error:
        return complain_of_output(error)
    except H5ZarrError as error:
        return complain_of(references, error)
    tell(finding_lines(found, quiet=arguments.quiet, phrase=phrase))
    if not arguments.quiet and arguments.report != "-":
        write_lines([validation_summary(found)])
    write_report(arguments, found.to_json())
    return DONE if found.is_valid else DONE_WITH_PROBLEMS

"""Rules of NZ-1.0 for a reference file: those shared with the writer, and those about files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from h5zarr.commands.validate.members import attributes_of, codecs_of, dimension_names_of, grid_of, is_v3, shape_of
from h5zarr.commands.validate.raw import RawNode, RawReferences
from h5zarr.commands.validate.rules import Check, Found, Level, Result, Rule, Unchecked
from h5zarr.commands.validate.zarr3_nodes import check_consolidated_equal
from h5zarr.errors import SURPRISES, H5ZarrError
from h5zarr.zarr_model.nz.declare import NOT_VERSION_3, NZ_RULES
from h5zarr.zarr_model.nz.nodes import NzNode, NzNodes, Values, decode_line
from h5zarr.zarr_model.nz.rule import Verdict, Violation
from h5zarr.zarr_model.v2_nodes import decode_array_v2

_V2_NAMES = "_ARRAY_DIMENSIONS"


def _nodes_of(raw: RawReferences) -> NzNodes:
    """Return the nodes of a reference file in NZ's terms. Data types of version 2 are not considered."""
    return {
        path: NzNode(
            path=path,
            is_array=node.is_array,
            attributes={name: value for name, value in attributes_of(node).items() if is_v3(node) or name != _V2_NAMES},
            shape=shape_of(node) if node.is_array else None,
            dimension_names=dimension_names_of(node) if node.is_array else None,
            data_type=node.metadata.get("data_type"),
            values=partial(_values_of, node),
        )
        for path, node in raw.nodes.items()
    }


def _values_of(node: RawNode) -> Values:
    grid = grid_of(node)
    if grid is None:
        return "its metadata do not define how to read its values"
    if is_v3(node):
        codecs = [{"name": name, "configuration": configuration} for name, configuration in codecs_of(node) or ()]
        return decode_line(grid, node.metadata.get("data_type"), codecs, node.inline)
    try:
        array = decode_array_v2(node.path, node.metadata, attributes_of(node))
    except (H5ZarrError, *SURPRISES):
        return "its metadata do not define how to read its values"
    return decode_line(grid, array.data_type, array.codecs, node.inline)


def _adapted(check: Callable[[NzNodes], Iterator[Verdict]]) -> Check:
    def check_references(raw: RawReferences) -> Iterator[Result]:
        for one in check(_nodes_of(raw)):
            if isinstance(one, Violation):
                yield Found(one.path, one.what, one.remedy)
            else:
                yield Unchecked(one.path, one.why)

    return check_references


def _check_version(raw: RawReferences) -> Iterator[Result]:
    if raw.zarr_format != 3:
        yield Found("/", NOT_VERSION_3, "Write version 3.")


def _check_consolidated(raw: RawReferences) -> Iterator[Result]:
    if raw.consolidated is None:
        yield Found("/", "the metadata are not consolidated", "Consolidate the metadata.")


RULES = (
    Rule(
        id="nz/zarr-v3",
        level=Level.ERROR,
        section="Normative Summary 1; Relationship to Zarr v2",
        asks="the metadata is Zarr version 3; the `zarr3` rules check that it is valid",
        check=_check_version,
        formats=(2, 3),
    ),
    *(
        Rule(
            id=f"nz/{rule.name}",
            level=Level.ERROR if rule.is_must else Level.WARNING,
            section=rule.section,
            asks=rule.asks,
            check=_adapted(rule.check),
            formats=(2, 3),
        )
        for rule in NZ_RULES
    ),
    Rule(
        id="nz/consolidated-equal",
        level=Level.ERROR,
        section="Consolidated Metadata",
        asks="consolidated metadata equals the metadata of the nodes",
        check=check_consolidated_equal,
    ),
    Rule(
        id="nz/consolidated",
        level=Level.WARNING,
        section="Consolidated Metadata",
        asks="metadata is consolidated",
        check=_check_consolidated,
        formats=(2, 3),
    ),
)

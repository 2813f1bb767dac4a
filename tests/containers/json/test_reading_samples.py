"""Every file that can be translated: what is written, read back, is what was written."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from h5zarr.commands.translate.translate import translate
from h5zarr.commands.translate.translation import Translation
from h5zarr.containers.fitting import fit
from h5zarr.containers.json.json_reading import decode_references
from h5zarr.containers.json.json_writing import write_json
from h5zarr.zarr_model.hierarchy import ArrayNode
from tests.collections_of_files import any_samples, translatable_shared
from tests.containers.hierarchies import assert_same, assert_same_chunks


def check_round_trips(path: Path) -> None:
    done = translate(path)
    check_version_3(done)
    check_version_2(done)


def check_version_3(done: Translation) -> None:
    out = io.BytesIO()
    write_json(done.fitted, done.provenance, out)
    read = decode_references(out.getvalue(), "refs.json")
    assert_same(done.hierarchy, read.hierarchy)
    assert read.provenance == done.provenance
    assert read.hierarchy.problems == read.hierarchy.warnings == ()


def check_version_2(done: Translation) -> None:
    """Check all but fill values: if a fill value cannot be expressed, unwritten chunks are written explicitly."""
    fitted = fit(done.hierarchy, zarr_format=2)
    nodes = fitted.nodes
    out = io.BytesIO()
    write_json(fitted, done.provenance, out)
    hierarchy = decode_references(out.getvalue(), "refs.json").hierarchy
    assert hierarchy.problems == hierarchy.warnings == ()
    assert list(hierarchy.nodes) == list(nodes)
    assert hierarchy.urls == done.hierarchy.urls
    for path, expected in nodes.items():
        node, array = hierarchy.nodes[path], done.hierarchy.nodes[path]
        assert json.dumps(node.attributes, sort_keys=True) == json.dumps(array.attributes, sort_keys=True)
        if isinstance(node, ArrayNode):
            assert expected.manifest is not None
            assert_same_chunks(node.manifest, expected.manifest)
            for part in ("shape", "data_type", "chunk_shape", "codecs", "dimension_names"):
                assert getattr(node, part) == getattr(array, part), (path, part)


@pytest.mark.parametrize("path", any_samples())
def test_samples_read_back_as_they_were_written(path: Path) -> None:
    check_round_trips(path)


@pytest.mark.parametrize("path", translatable_shared("corpus"))
def test_the_corpus_reads_back_as_it_was_written(path: Path) -> None:
    check_round_trips(path)


@pytest.mark.parametrize("path", translatable_shared("traps"))
def test_traps_read_back_as_they_were_written(path: Path) -> None:
    check_round_trips(path)

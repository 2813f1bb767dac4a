"""References from one container into another, and back: the same bytes, the same values, or a named problem."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr
import zarr

import h5zarr
from h5zarr.commands.convert.convert import FillValueWanted, convert
from h5zarr.commands.translate.translate import translate
from h5zarr.commands.translate.translation import ProblemsFound
from h5zarr.containers.json.json_reading import decode_references
from h5zarr.engine.values import open_values
from h5zarr.errors import H5ZarrError, MalformedFile, OutputError
from h5zarr.opening import open_hierarchy
from h5zarr.signatures import WrongFormat
from h5zarr.zarr_model.hierarchy import ArrayNode
from tests.collections_of_files import SAMPLES, any_samples, translatable_shared
from tests.containers.hierarchies import assert_same, assert_same_node
from tests.containers.json.test_reading_others import write_netcdf
from tests.made_files import make_ocean, make_plain

pytest.importorskip("icechunk")
pytest.importorskip("pyarrow")
pytestmark = [
    pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3"),
    pytest.mark.filterwarnings("ignore:The data type .* does not have a Zarr V3 spec"),
    pytest.mark.filterwarnings("ignore::h5zarr.errors.ProblemWarning"),
]

LARGE = 20_000_000
_MOST_VALUES = 2_000_000


@pytest.fixture(autouse=True)
def collector_at_rest() -> Iterator[None]:
    """Keep the collector from closing h5py's objects in another thread while kerchunk visits a file: it would hang."""
    gc.disable()
    yield
    gc.enable()


def containers(directory: Path) -> dict[str, str]:
    return {
        "parquet": f"{directory}/refs.parquet",
        "icechunk": f"icechunk+file://{directory}/repository",
        "compressed": f"{directory}/refs.json.zst",
    }


def translated(path: Path, out: Path, version: int = 3) -> Path:
    translate(path, out, zarr_format=version)
    return out


def check_same_bytes(path: Path, directory: Path) -> None:
    """Check that JSON comes back from every container as it was, but for what that container cannot hold."""
    first = translated(path, directory / "first.json")
    for name, out in containers(directory).items():
        done = convert(first, out)
        back = directory / f"{name}.json"
        convert(out, back)
        known = decode_references(first.read_bytes(), "first").hierarchy.problems
        if done.problems[len(known) :]:
            assert name == "parquet"
            assert {problem.kind for problem in done.problems[len(known) :]} == {"unrepresentable"}
            again = directory / "again.json"
            convert(back, containers(directory)["compressed"])
            convert(containers(directory)["compressed"], again)
            assert again.read_bytes() == back.read_bytes()
        else:
            assert back.read_bytes() == first.read_bytes(), name


def check_values(path: Path, directory: Path) -> None:
    """Check that all containers of one file, of both versions, show the same values."""
    first = translated(path, directory / "first.json")
    expected = read_values(str(first))
    for name, out in containers(directory).items():
        convert(first, out)
        assert_same_values(read_values(out), expected, name)
    for out in (directory / "v2.json", directory / "v2.parquet"):
        left_out = {problem.path for problem in convert(first, out, zarr_format=2).problems}
        convert(out, directory / "back.json")
        kept = {name: values for name, values in expected.items() if name not in left_out}
        assert_same_values(read_values(str(directory / "back.json")), kept, out.name)


def read_values(url: str) -> dict[str, Any]:
    """Return the values of all arrays by path, as the engine reads them; the kind of the error where it cannot."""
    opened = open_hierarchy(url)
    found: dict[str, Any] = {}
    for path, node in opened.hierarchy.nodes.items():
        if isinstance(node, ArrayNode) and np.prod(node.shape) <= _MOST_VALUES:
            try:
                found[path] = open_values(opened, path)[(slice(None),) * len(node.shape)]
            except H5ZarrError as error:
                found[path] = error.kind
    opened.close()
    return found


def assert_same_values(ours: dict[str, Any], theirs: dict[str, Any], name: str) -> None:
    missing = theirs.keys() - ours.keys()
    assert ours.keys() <= theirs.keys()
    assert not missing or name.endswith("parquet")
    for path, values in ours.items():
        if isinstance(values, str):
            assert values == theirs[path], (name, path)
        elif values.dtype.names is not None:  # in which numpy takes no NaN for the same as another
            assert (values.dtype, values.tobytes()) == (theirs[path].dtype, theirs[path].tobytes()), (name, path)
        else:
            np.testing.assert_array_equal(values, theirs[path], err_msg=f"{name} {path}", strict=True)


@pytest.mark.parametrize("path", any_samples())
def test_samples_come_back_from_every_container_byte_for_byte(path: Path, tmp_path: Path) -> None:
    check_same_bytes(path, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("path", translatable_shared("corpus"))
def test_real_files_come_back_from_every_container_byte_for_byte(path: Path, tmp_path: Path) -> None:
    check_same_bytes(path, tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        *("ocean.nc", "netcdf4_types.nc", "types_strings_vlen_latest.h5", "types_compound_latest.h5"),
        *("fill_and_attribute.h5", "fill_types_latest.h5", "filters_plugins.h5", "chunks_fixed_array_latest.h5"),
    ],
)
def test_containers_of_a_sample_show_the_same_values(name: str, tmp_path: Path) -> None:
    check_values(SAMPLES / name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("path", any_samples())
def test_containers_of_samples_show_the_same_values(path: Path, tmp_path: Path) -> None:
    check_values(path, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("path", translatable_shared("corpus", most_nbytes=LARGE))
def test_containers_of_real_files_show_the_same_values(path: Path, tmp_path: Path) -> None:
    check_values(path, tmp_path)


@pytest.mark.parametrize("path", any_samples())
def test_version_2_comes_back_from_version_3_as_the_reader_understood_it(path: Path, tmp_path: Path) -> None:
    first = translated(path, tmp_path / "v2.json", version=2)
    convert(first, tmp_path / "v3.json")
    expected = open_hierarchy(first).hierarchy
    assert_same(open_hierarchy(tmp_path / "v3.json").hierarchy, expected)


# --- what goes along


def test_a_source_that_changed_is_noticed_after_conversions(tmp_path: Path) -> None:
    path = make_plain(tmp_path / "plain.h5")
    translate(path, tmp_path / "a.json")
    place = tmp_path / "a.json"
    for out in [*containers(tmp_path).values(), str(tmp_path / "b.json")]:
        convert(place, out)
        place = Path(out) if "+" not in out else out  # type: ignore[assignment]
    path.write_bytes(path.read_bytes() + b"!")
    with pytest.raises(h5zarr.SourceChanged):
        zarr.open_group(h5zarr.open_store(tmp_path / "b.json"), mode="r")["x"][...]


def test_omissions_of_the_first_translation_are_still_reported(tmp_path: Path) -> None:
    translation = translate(make_ocean(tmp_path / "ocean.h5"), tmp_path / "a.json")
    for out in containers(tmp_path).values():
        assert convert(tmp_path / "a.json", out).problems == translation.problems != ()
        assert open_hierarchy(out).hierarchy.problems == translation.problems


def test_another_place_for_the_source_stays(tmp_path: Path) -> None:
    path = make_plain(tmp_path / "plain.h5")
    translate(path, tmp_path / "a.json", target_url="s3://bucket/a b%.h5")
    for name, out in containers(tmp_path).items():
        convert(tmp_path / "a.json", out)
        convert(out, tmp_path / f"{name}.json")
        assert (tmp_path / f"{name}.json").read_bytes() == (tmp_path / "a.json").read_bytes()


# --- what cannot be


@pytest.mark.parametrize("name", ["a.json", "a.parquet"])
def test_references_are_not_written_onto_themselves(tmp_path: Path, name: str) -> None:
    translate(make_plain(tmp_path / "plain.h5"), tmp_path / name)
    (tmp_path / "link.parquet").symlink_to(tmp_path / name)
    for out in (tmp_path / name, tmp_path / "link.parquet"):
        with pytest.raises(OutputError, match="the output would replace the input file"):
            convert(tmp_path / name, out)


def test_a_repository_is_not_written_onto_itself(tmp_path: Path) -> None:
    translate(make_plain(tmp_path / "plain.h5"), f"icechunk+file://{tmp_path}/r")
    with pytest.raises(OutputError, match="the repository that is read"):
        convert(f"icechunk+file://{tmp_path}/r", f"icechunk+file://{tmp_path}/./r")


def test_a_data_file_is_not_taken_for_references(tmp_path: Path) -> None:
    with pytest.raises(WrongFormat, match="not references") as refused:
        convert(make_plain(tmp_path / "plain.h5"), tmp_path / "a.json")
    assert "h5zarr translate" in refused.value.remedy


def test_version_2_and_icechunk_do_not_go_together(tmp_path: Path) -> None:
    translate(make_plain(tmp_path / "plain.h5"), tmp_path / "a.json")
    with pytest.raises(OutputError, match="holds Zarr version 3"):
        convert(tmp_path / "a.json", f"icechunk+file://{tmp_path}/r", zarr_format=2)


def transposed(url: str) -> dict[str, Any]:
    """Return references of version 2 to an array that version 3 needs a codec for which version 2 has no word for."""
    array = {"zarr_format": 2, "shape": [2, 2], "chunks": [2, 2], "dtype": "<i4", "fill_value": 0, "order": "F"}
    return {"v/.zarray": {**array, "filters": None, "compressor": None}, "v/0.0": [url, 0, 16]}


def test_what_the_target_cannot_hold_is_a_problem_and_with_strict_an_error(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text(json.dumps(transposed("s3://bucket/raw")))
    convert(tmp_path / "f.json", tmp_path / "v3.json")
    (problem,) = convert(tmp_path / "v3.json", tmp_path / "v2.json", zarr_format=2).problems
    assert (problem.path, "transpose" in problem.message) == ("/v", True)
    os.remove(tmp_path / "v2.json")
    with pytest.raises(ProblemsFound):
        convert(tmp_path / "v3.json", tmp_path / "v2.json", zarr_format=2, strict=True)
    assert not (tmp_path / "v2.json").exists()


# --- what others wrote


def test_references_to_a_file_that_readers_name_stay_so_in_json_and_are_refused_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({**transposed("x"), "v/0.0": [None, 0, 16]}))
    convert(tmp_path / "a.json", tmp_path / "b.json")
    assert json.loads((tmp_path / "b.json").read_text())["refs"]["v/c/0/0"] == [None, 0, 16]
    for name in ("parquet", "icechunk"):
        with pytest.raises(OutputError, match="do not say which file"):
            convert(tmp_path / "a.json", containers(tmp_path)[name])


def test_relative_paths_become_absolute_and_it_is_said(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.json").write_text(json.dumps(transposed("raw.bin")))
    done = convert("a.json", "b.json")
    assert done.hierarchy.urls == (str(tmp_path / "raw.bin"),)
    assert [warning.kind for warning in done.warnings] == ["url"]


def test_secrets_that_others_wrote_are_kept_and_it_is_said(tmp_path: Path) -> None:
    url = "https://host/raw.bin?X-Amz-Signature=abc"
    (tmp_path / "a.json").write_text(json.dumps(transposed(url)))
    done = convert(tmp_path / "a.json", tmp_path / "b.json")
    assert done.hierarchy.urls == (url,)
    (warning,) = [one for one in done.warnings if one.kind == "secret"]
    assert "abc" not in warning.message


def test_whole_files_stay_whole_and_are_refused_by_icechunk(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({**transposed("x"), "v/0.0": ["s3://bucket/raw"]}))
    convert(tmp_path / "a.json", tmp_path / "b.parquet")
    convert(tmp_path / "b.parquet", tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text())["refs"]["v/c/0/0"] == ["s3://bucket/raw"]
    with pytest.raises(OutputError, match="whole file"):
        convert(tmp_path / "a.json", containers(tmp_path)["icechunk"])


@pytest.fixture
def kerchunked(tmp_path: Path) -> dict[str, Path]:
    """References that kerchunk wrote, as JSON and as Parquet."""
    hdf, frames = pytest.importorskip("kerchunk.hdf"), pytest.importorskip("kerchunk.df")
    path = write_netcdf(tmp_path / "data.nc")
    document = hdf.SingleHdf5ToZarr(str(path), inline_threshold=50).translate()
    (tmp_path / "kerchunk.json").write_text(json.dumps(document))
    frames.refs_to_dataframe(document, str(tmp_path / "kerchunk.parquet"), record_size=100)
    return {"json": tmp_path / "kerchunk.json", "parquet": tmp_path / "kerchunk.parquet", "file": path}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("form", ["json", "parquet"])
@pytest.mark.parametrize("container", ["parquet", "icechunk", "compressed"])
def test_what_kerchunk_wrote_shows_the_same_dataset_in_every_container(
    kerchunked: dict[str, Path], form: str, container: str, tmp_path: Path
) -> None:
    out = containers(tmp_path)[container]
    done = convert(kerchunked[form], out)
    assert done.problems == ()
    with (
        xr.open_dataset(out, engine="h5zarr") as ours,
        xr.open_dataset(kerchunked["json"], engine="h5zarr") as theirs,
        xr.open_dataset("reference://", engine="zarr", storage_options={"fo": str(kerchunked["json"])}, **_V2) as stock,
    ):
        xr.testing.assert_identical(ours.load(), theirs.load())
        xr.testing.assert_identical(ours, stock.load())


_V2: Any = {"backend_kwargs": {"consolidated": False, "zarr_format": 2}}


# --- fill values


def sparse(fill: Any, **changes: Any) -> dict[str, Any]:
    array = {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<f4", "fill_value": fill, "order": "C"}
    metadata = {**array, "filters": None, "compressor": None, **changes}
    attributes = {"_ARRAY_DIMENSIONS": ["x"]}
    return {"g/v/.zarray": metadata, "g/v/.zattrs": attributes, "g/v/0": ["s3://bucket/raw", 0, 8]}


def converted(entries: dict[str, Any], directory: Path, **choices: Any) -> ArrayNode:
    (directory / "a.json").write_text(json.dumps(entries))
    convert(directory / "a.json", directory / "b.json", **choices)
    node = open_hierarchy(directory / "b.json").hierarchy.nodes["/g/v"]
    assert isinstance(node, ArrayNode)
    return node


def test_a_fill_value_of_xarray_is_what_is_missing(tmp_path: Path) -> None:
    node = converted(sparse(-9.0), tmp_path)
    assert (node.fill_value, node.attributes) == (-9.0, {"_FillValue": "AAAAAAAAIsA="})


def test_without_a_fill_value_nothing_is_written_where_chunks_are_missing(tmp_path: Path) -> None:
    with pytest.raises(FillValueWanted, match="/g/v: fill_value is null") as wanted:
        converted(sparse(None), tmp_path)
    assert "fill_value=" in wanted.value.remedy
    assert not (tmp_path / "b.json").exists()


@pytest.mark.parametrize("pattern", ["**", "/g/v", "v", "/g/*"])
@pytest.mark.parametrize(("value", "expected"), [(0, 0.0), (-9.5, -9.5), ("NaN", "NaN")])
def test_a_fill_value_that_is_given_is_what_unwritten_chunks_read_as(
    tmp_path: Path, pattern: str, value: Any, expected: Any
) -> None:
    node = converted(sparse(None), tmp_path, fill_value={pattern: value})
    assert (node.fill_value, node.attributes) == (expected, {})


def test_the_last_that_fits_counts(tmp_path: Path) -> None:
    assert converted(sparse(None), tmp_path, fill_value={"**": 1, "/g/v": 2}).fill_value == 2.0


def test_a_fill_value_is_asked_for_once(tmp_path: Path) -> None:
    asked = []

    def ask(path: str, node: ArrayNode) -> Any:
        asked.append((path, node.shape))
        return 5

    assert converted(sparse(None), tmp_path, ask=ask).fill_value == 5.0
    assert asked == [("/g/v", (4,))]


def test_who_is_asked_may_not_know(tmp_path: Path) -> None:
    with pytest.raises(FillValueWanted):
        converted(sparse(None), tmp_path, ask=lambda path, node: None)


def test_where_no_chunk_is_missing_a_fill_value_does_not_matter(tmp_path: Path) -> None:
    whole = {**sparse(None), "g/v/1": ["s3://bucket/raw", 8, 8]}
    assert converted(whole, tmp_path).fill_value == 0.0
    assert converted(whole, tmp_path, fill_value={"v": 3}).fill_value == 3.0


@pytest.mark.parametrize("given", [{"/g/w": 0}, {"w": 0}])
def test_a_fill_value_for_nothing_is_an_error(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(FillValueWanted, match="no array that lacks a fill value matches"):
        converted(sparse(None), tmp_path, fill_value=given)


@pytest.mark.parametrize("value", ["x", [1], 1e300, None])
def test_a_fill_value_of_another_type_is_an_error(tmp_path: Path, value: Any) -> None:
    with pytest.raises(MalformedFile, match="/g/v: the fill value does not fit the type float32"):
        converted(sparse(None), tmp_path, fill_value={"v": value})


def test_version_2_may_leave_it_open_again(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(sparse(None)))
    done = convert(tmp_path / "a.json", tmp_path / "b.json", zarr_format=2)
    assert done.fitted.nodes["/g/v"].documents[".zarray"]["fill_value"] is None


def test_what_h5zarr_left_open_needs_no_answer(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "sparse.h5", "w") as file:
        file.create_dataset("v", (4,), "f4", chunks=(2,))[:2] = 1
    first = translated(tmp_path / "sparse.h5", tmp_path / "v2.json", version=2)
    convert(first, tmp_path / "v3.json")
    translate(tmp_path / "sparse.h5", tmp_path / "direct.json")
    nodes = [open_hierarchy(tmp_path / name).hierarchy.nodes["/v"] for name in ("v3.json", "direct.json")]
    assert_same_node(*nodes)


def test_a_node_named_like_metadata_is_refused_as_in_files(tmp_path: Path) -> None:
    entries = {
        "zarr.json": json.dumps({"zarr_format": 3, "node_type": "group"}),
        "zarr.json/zarr.json": json.dumps({"zarr_format": 3, "node_type": "group"}),
        "kept/zarr.json": json.dumps({"zarr_format": 3, "node_type": "group"}),
    }
    (tmp_path / "refs.json").write_text(json.dumps({"version": 1, "refs": entries}))
    done = convert(tmp_path / "refs.json", tmp_path / "out.json")
    assert list(done.hierarchy.nodes) == ["/", "/kept"]
    assert [problem.path for problem in done.problems] == ["/zarr.json"]

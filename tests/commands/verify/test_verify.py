"""Verifying finds what is wrong with references, and nothing where nothing is."""

from __future__ import annotations

import json
import os
import shutil
import sys
import warnings
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import h5zarr
from h5zarr.cli import main
from h5zarr.commands.verify.verify import Verification, verify
from h5zarr.errors import H5ZarrError, PackageMissing, SourceError
from h5zarr.processes import WorkersLost
from tests.collections_of_files import SAMPLES, SHARED, comparable, parameters, sample_files, shared_files

References = dict[str, Any]
LARGE_NBYTES = 50_000_000


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file with chunks that are referred to, some that are missing, an inlined coordinate, and attributes."""
    path = tmp_path / "source.h5"
    values = np.arange(40.0 * 30, dtype="f4").reshape(40, 30)
    with h5py.File(path, "w") as file:
        file.attrs["title"] = "verified"
        x = file.create_dataset("x", data=np.arange(40.0))
        x.make_scale("x")
        v = file.create_dataset("v", (40, 30), "f4", chunks=(10, 30), compression="gzip", shuffle=True, fillvalue=-1)
        v[:30] = values[:30]
        v.dims[0].attach_scale(x)
        v.attrs["units"] = "m"
        v.attrs["_FillValue"] = np.float32(-1)
        file.create_dataset("plain", data=np.arange(5000, dtype="i4"), chunks=(1000,))
        file.create_dataset("words", data=np.array([b"one", b"two"], "S3"))
    return path


def check(source: Path, change: Callable[[References], None]) -> Verification:
    """Return what is found in references that were changed."""
    out = source.with_suffix(".json")
    h5zarr.translate(source, out)
    document = json.loads(out.read_text())
    change(document["refs"])
    out.write_text(json.dumps(document))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return verify(out)


def differences(found: Verification) -> dict[str, list[str]]:
    return {one.path: one.differences + ([one.error] if one.error else []) for one in found.arrays if not one.is_right}


def metadata(references: References, path: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the metadata of an array, in its own place and in the consolidated one."""
    name = f"{path}/zarr.json"
    node = json.loads(references[name])
    change(node)
    references[name] = json.dumps(node)
    root = json.loads(references["zarr.json"])
    root["consolidated_metadata"]["metadata"][path] = node
    references["zarr.json"] = json.dumps(root)


def test_nothing_is_found_where_nothing_is_wrong(source: Path) -> None:
    found = check(source, lambda references: None)
    assert found.is_right
    assert {one.path: (one.compared, one.total) for one in found.arrays} == {
        "/x": (1, 1),
        "/v": (4, 4),
        "/plain": (5, 5),
        "/words": (1, 1),
    }


def test_an_address_that_is_off_by_one_is_found(source: Path) -> None:
    def change(references: References) -> None:
        references["plain/c/2"][1] += 1

    found = differences(check(source, change))
    assert list(found) == ["/plain"]
    assert "differ" in found["/plain"][0]
    assert "[2000]" in found["/plain"][0]


def test_a_swapped_pair_is_found(source: Path) -> None:
    def change(references: References) -> None:
        references["v/c/0/0"], references["v/c/1/0"] = references["v/c/1/0"], references["v/c/0/0"]

    (difference,) = differences(check(source, change))["/v"]
    assert difference.endswith("at [0, 0] is 300.0, expected 0.0")


def test_a_dropped_codec_is_found(source: Path) -> None:
    def change(references: References) -> None:
        metadata(references, "v", lambda node: node["codecs"].pop(1))

    assert list(differences(check(source, change))) == ["/v"]


def test_a_wrong_fill_value_is_found(source: Path) -> None:
    def change(references: References) -> None:
        metadata(references, "v", lambda node: node.update(fill_value=0.0))

    found = differences(check(source, change))["/v"]
    assert found[0] == "fill value is 0.0, expected -1.0"
    assert found[1].endswith("at [30, 0] is 0.0, expected -1.0")


def test_a_wrong_name_of_a_dimension_is_found(source: Path) -> None:
    def change(references: References) -> None:
        metadata(references, "v", lambda node: node.update(dimension_names=["y", node["dimension_names"][1]]))

    assert differences(check(source, change))["/v"] == ["name of dimension 0 is 'y', expected 'x'"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda attributes: attributes.update(units="km"), "attribute units is 'km', expected 'm'"),
        (lambda attributes: attributes.pop("units"), "attribute units is missing, expected 'm'"),
        (lambda attributes: attributes.update(new=1), "attribute new is 1, expected none"),
        (lambda attributes: attributes.update(_FillValue="AAAAAAAA8D8="), "attribute _FillValue is 1.0, expected -1.0"),
    ],
)
def test_a_wrong_attribute_is_found(source: Path, change: Any, expected: str) -> None:
    def apply(references: References) -> None:
        metadata(references, "v", lambda node: change(node["attributes"]))

    assert differences(check(source, apply))["/v"] == [expected]


def test_a_wrong_attribute_of_a_group_is_found(source: Path) -> None:
    def change(references: References) -> None:
        root = json.loads(references["zarr.json"])
        root["attributes"]["title"] = "forged"
        references["zarr.json"] = json.dumps(root)

    found = check(source, change)
    assert not found.is_right
    assert found.groups[0].differences == ["attribute title is 'forged', expected 'verified'"]


def test_a_wrong_shape_is_found(source: Path) -> None:
    def change(references: References) -> None:
        metadata(references, "plain", lambda node: node.update(shape=[4000]))

    assert differences(check(source, change))["/plain"] == ["shape is (4000,), expected (5000,)"]


def test_a_wrong_type_is_found(source: Path) -> None:
    def change(references: References) -> None:
        metadata(references, "plain", lambda node: node.update(data_type="uint32"))

    assert any("type is uint32, expected int32" in one for one in differences(check(source, change))["/plain"])


def test_a_chunk_that_is_missing_is_found(source: Path) -> None:
    def change(references: References) -> None:
        del references["plain/c/3"]

    (difference,) = differences(check(source, change))["/plain"]
    assert difference.endswith("at [3000] is 0, expected 3000")


def test_an_inlined_chunk_that_is_wrong_is_found(source: Path) -> None:
    def change(references: References) -> None:
        (name,) = (name for name in references if name.startswith("x/c"))
        references[name] = "base64:" + "A" * (40 * 8 * 4 // 3 + 1) + "="

    assert list(differences(check(source, change))) == ["/x"]


def test_an_array_that_the_file_does_not_have_is_found(source: Path, tmp_path: Path) -> None:
    h5zarr.translate(source, tmp_path / "refs.json")
    other = tmp_path / "other.h5"
    shutil.copy(source, other)
    with h5py.File(other, "a") as file:
        del file["words"]
    assert verify(tmp_path / "refs.json", other).not_found == ["/words"]


def test_a_changed_source_is_noticed_first(source: Path, tmp_path: Path) -> None:
    h5zarr.translate(source, tmp_path / "refs.json")
    status = source.stat()
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))
    found = verify(tmp_path / "refs.json")
    assert "modification time" in found.changed
    assert not found.is_right
    assert not found.arrays


def test_a_truncated_source_is_noticed_first(source: Path, tmp_path: Path) -> None:
    h5zarr.translate(source, tmp_path / "refs.json")
    os.truncate(source, source.stat().st_size - 100)
    assert "bytes" in verify(tmp_path / "refs.json").changed


def test_a_source_that_is_gone_is_an_error(source: Path, tmp_path: Path) -> None:
    h5zarr.translate(source, tmp_path / "refs.json")
    source.unlink()
    with pytest.raises(H5ZarrError, match="no such file"):
        verify(tmp_path / "refs.json")


def test_a_group_that_is_the_root_is_compared_with_that_group(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["a/b/x"] = np.arange(10)
    h5zarr.translate(tmp_path / "f.h5", tmp_path / "refs.json", group="/a/b")
    assert verify(tmp_path / "refs.json").not_found == ["/x"]
    assert verify(tmp_path / "refs.json", group="/a/b").is_right


@pytest.mark.parametrize("kind", ["first", "last", "missing", "inlined"])
def test_a_small_sample_has_every_kind_of_chunk(kind: str, source: Path) -> None:
    place = {"first": "plain/c/0", "last": "plain/c/4"}

    def change(references: References) -> None:
        if kind in place:
            references[place[kind]][1] += 4
        elif kind == "missing":
            metadata(references, "v", lambda node: node.update(fill_value=0.5))
        else:
            (name,) = (name for name in references if name.startswith("x/c"))
            references[name] = "base64:" + "A" * (40 * 8 * 4 // 3 + 1) + "="

    out = source.with_suffix(".json")
    check(source, change)
    assert not verify(out, sample=0.01).is_right


def test_the_same_seed_takes_the_same_sample(source: Path, tmp_path: Path) -> None:
    with h5py.File(source, "a") as file:
        file.create_dataset("many", data=np.arange(10_000), chunks=(10,))
    h5zarr.translate(source, tmp_path / "refs.json")
    one, other = (
        {array.path: array.compared for array in verify(tmp_path / "refs.json", sample=0.1, seed=7).arrays}
        for _ in "12"
    )
    assert one == other
    assert 100 <= one["/many"] <= 103


@pytest.mark.parametrize("form", ["refs.parquet", "refs.json.zst"])
def test_other_containers_are_verified_too(form: str, source: Path, tmp_path: Path) -> None:
    h5zarr.translate(source, tmp_path / form)
    assert verify(tmp_path / form).is_right


# --- every file


def verify_file(path: Path) -> Verification:
    h5zarr.translate(path, path.with_suffix(".json"))
    return h5zarr.verify(path.with_suffix(".json"))


def test_complex_numbers_are_compared_by_whatever_names_their_parts_have(tmp_path: Path) -> None:
    path = tmp_path / "matlab.h5"
    with h5py.File(path, "w") as file:
        file["z"] = np.array([(1.5, -2.0), (0.0, 3.0)], [("real", "f8"), ("imag", "f8")])
    assert verify_file(path).is_right
    document = json.loads(path.with_suffix(".json").read_text())
    content = np.array([1.5 - 2.0j, 0.0 + 4.0j]).tobytes()
    document["refs"]["z/c/0"] = f"base64:{b64encode(content).decode()}"
    path.with_suffix(".json").write_text(json.dumps(document))
    (wrong,) = [one for one in h5zarr.verify(path.with_suffix(".json")).arrays if not one.is_right]
    assert wrong.differences == ["member imag: value at [1] is 4.0, expected 3.0"]


def test_a_dimension_may_have_the_name_of_any_link_to_its_scale(tmp_path: Path) -> None:
    path = tmp_path / "links.nc"
    with h5py.File(path, "w") as file:
        file["time"] = np.arange(3.0)
        file["time"].make_scale()
        file["air"] = np.arange(3.0)
        file["air"].dims[0].attach_scale(file["time"])
        file["also_time"] = file["time"]
    h5zarr.translate(path, path.with_suffix(".json"))
    document = json.loads(path.with_suffix(".json").read_text())
    for name, is_right in (("also_time", True), ("time", True), ("air", False), ("nothing", False)):
        metadata = document["refs"]["air/zarr.json"]
        told = {**(json.loads(metadata) if isinstance(metadata, str) else metadata), "dimension_names": [name]}
        document["refs"]["air/zarr.json"] = json.dumps(told) if isinstance(metadata, str) else told
        path.with_suffix(".json").write_text(json.dumps(document))
        assert h5zarr.verify(path.with_suffix(".json")).is_right == is_right, name


def test_an_attribute_that_no_library_can_read_is_not_missed(tmp_path: Path) -> None:
    path = tmp_path / "wide.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(3.0)
        wide = h5py.h5t.STD_U64LE.copy()
        wide.set_size(16)
        h5py.h5a.create(file["x"].id, b"wide", wide, h5py.h5s.create(h5py.h5s.SCALAR))
    assert verify_file(path).is_right


def test_a_large_array_that_was_never_written_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "void.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("void", (4_000_000_000, 2), "f4", fillvalue=7)
    (array,) = verify_file(path).arrays
    assert (array.is_right, array.compared) == (True, 1)


def check_file(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)  # libhdf5 looks for raw files from here
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        h5zarr.translate(path, tmp_path / "refs.json")
        found = verify(tmp_path / "refs.json", sample=0.05 if path.stat().st_size > LARGE_NBYTES else None)
    assert differences(found) == {}
    assert found.is_right


@pytest.mark.parametrize("path", parameters(sample_files(), SAMPLES))
def test_samples_are_right(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_file(path, tmp_path, monkeypatch)


@pytest.mark.parametrize("path", parameters(comparable(shared_files("traps")), SHARED / "traps"))
def test_traps_are_right(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_file(path, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("path", parameters(comparable(shared_files("corpus")), SHARED / "corpus"))
def test_real_files_are_right(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_file(path, tmp_path, monkeypatch)


# --- the command


def test_the_command_says_what_was_verified(
    source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refs, report = str(tmp_path / "refs.json"), tmp_path / "report.json"
    h5zarr.translate(source, refs)
    assert main(["verify", refs, "--report", str(report), str(source)]) == 0
    shown = capfd.readouterr().out
    assert "/v: verified 4 of 4 chunks" in shown
    assert "4 arrays right, 0 wrong" in shown
    told = json.loads(report.read_text())
    assert told["right"] is True
    assert {"path": "/plain", "chunks_compared": 5, "chunks": 5} in told["arrays"]


def test_the_summary_counts_arrays_that_the_file_lacks(
    source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    refs, other = str(tmp_path / "refs.json"), tmp_path / "other.h5"
    h5zarr.translate(source, refs)
    h5py.File(other, "w").close()
    assert main(["verify", refs, str(other)]) == 1
    assert "0 arrays right, 0 wrong, 4 not in the file" in capfd.readouterr().out


def test_the_command_says_what_differs(source: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def change(references: References) -> None:
        references["plain/c/2"][1] += 1

    check(source, change)
    assert main(["verify", str(source.with_suffix(".json")), "--quiet"]) == 1
    told = capfd.readouterr()
    assert told.out == ""
    assert told.err.startswith("/plain: the first of")


@pytest.mark.parametrize(
    "arguments", [["a", "b", "c"], ["a", "--sample", "2"], ["a", "--sample", "x"], ["missing.json"]]
)
def test_a_wrong_command_line_is_exit_2(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", *arguments]) == 2
    assert capfd.readouterr().err


def test_references_that_name_no_file_need_one(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "source.h5", "w") as file:
        file["v"] = 3
    h5zarr.translate(tmp_path / "source.h5", tmp_path / "refs.json")
    document = json.loads((tmp_path / "refs.json").read_text())
    (tmp_path / "refs.json").write_text(json.dumps(document["refs"]))
    with pytest.raises(H5ZarrError, match="the references do not name the file they were made from") as caught:
        verify(tmp_path / "refs.json")
    assert caught.value.remedy == "Give it as the second argument."


@pytest.mark.parametrize(
    ("start", "message", "remedy"),
    [
        (b"\x89HDF\r\n\x1a\n", "h5py cannot open it: ", "Check the file with h5dump."),
        (b"CDF\x01", "netCDF4 cannot open it: ", "Check the file with ncdump -h."),
    ],
)
def test_a_file_that_the_library_cannot_open_is_named(
    start: bytes, message: str, remedy: str, source: Path, tmp_path: Path
) -> None:
    h5zarr.translate(source, tmp_path / "refs.json")
    other = tmp_path / "other"
    other.write_bytes(start + b"\xff" * 100)
    with pytest.raises(SourceError) as caught:
        verify(tmp_path / "refs.json", other)
    assert str(caught.value).startswith(f"{other}: {message}")
    assert caught.value.remedy == remedy


def test_a_netcdf_3_file_is_compared_with_netcdf4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    h5zarr.translate(SAMPLES / "classic_by_netcdf.nc", tmp_path / "refs.json")
    monkeypatch.setitem(sys.modules, "netCDF4", None)
    with pytest.raises(
        PackageMissing, match=r"classic_by_netcdf\.nc: comparing a netCDF-3 file needs the package netCDF4"
    ):
        verify(tmp_path / "refs.json")


def test_inputs_that_cannot_be_sent_to_workers_are_an_error(source: Path, tmp_path: Path) -> None:
    h5zarr.translate(source, tmp_path / "refs.json")
    with pytest.raises(WorkersLost, match=r"the inputs cannot be sent to another process \(") as caught:
        verify(tmp_path / "refs.json", workers=2, storage_options={"made": lambda: None})
    assert caught.value.remedy == "Compare in this process: workers=1."

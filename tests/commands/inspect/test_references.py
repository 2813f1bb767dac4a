"""Inspecting references in each container, as text."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import h5zarr
from h5zarr.cli import main
from tests.collections_of_files import SAMPLES
from tests.servers import RangeServer

OCEAN = SAMPLES / "ocean.nc"
WHOLE = """\
{url}
  references in {container}, written by h5zarr {version}
  source: {source}, 135 kB
  dimensions:
    time = 18 (UNLIMITED)
    lat  = 40
    lon  = 120
  variables:
    lat   float32  (lat=40)
        inlined 160 bytes · fill 9.96921e+36
    lon   float32  (lon=120)
        inlined 480 bytes · fill 9.96921e+36
    time  float64  (time=18)
        inlined 144 bytes · fill 9.96921e+36
    sst   int16    (time=18, lat=40, lon=120)
        chunks (4, 20, 60) · 20 of 20 · shuffle, deflate(4) · 93.4 kB (2.1:1) · fill -32768
    u     float32  (time=18, lat=40, lon=120)
        chunks (4, 20, 60) · 20 of 20 · shuffle, deflate(4) · 9.41 kB (40.8:1) · fill 9.96921e+36
    v     float32  (time=18, lat=40, lon=120)
        chunks (4, 20, 60) · 20 of 20 · shuffle, deflate(4) · 9.34 kB (41.1:1) · fill 9.96921e+36

6 variables in 1 group, 60 chunks referenced, 3 inlined, 0 missing"""
CONTAINERS = {
    "refs.json": "a JSON file",
    "refs.json.gz": "a JSON file",
    "refs.parquet": "a directory of Parquet files",
    "icechunk+file://refs": "an Icechunk repository",
}


def place(tmp_path: Path, name: str) -> str:
    return name.replace("//", f"//{tmp_path}/") if "//" in name else str(tmp_path / name)


def translated(tmp_path: Path, source: Path = OCEAN, name: str = "refs.json", **options: Any) -> str:
    """Return the place of references to a file."""
    h5zarr.translate(source, place(tmp_path, name), **options)
    return place(tmp_path, name)


def made(tmp_path: Path, **datasets: Any) -> str:
    """Return the place of references to an HDF5 file with these datasets."""
    with h5py.File(tmp_path / "made.h5", "w") as file:
        for name, (values, how) in datasets.items():
            file.create_dataset(name, data=values, **how)
    return translated(tmp_path, tmp_path / "made.h5", inline_bytes=0)


def written(tmp_path: Path, entries: dict[str, Any]) -> Path:
    """Write references by hand."""
    texts = {key: json.dumps(value) if isinstance(value, dict) else value for key, value in entries.items()}
    (tmp_path / "foreign.json").write_text(json.dumps({"version": 1, "refs": texts}))
    return tmp_path / "foreign.json"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container_is_shown_in_the_same_way(name: str, tmp_path: Path) -> None:
    refs = translated(tmp_path, name=name)
    expected = WHOLE.format(url=refs, container=CONTAINERS[name], version=h5zarr.__version__, source=OCEAN)
    assert str(h5zarr.inspect(refs, no_attributes=True)).partition(" · a file of")[0] == expected


def test_attributes_are_those_of_the_file(tmp_path: Path) -> None:
    def attributes(place: Any) -> list[str]:
        return [line for line in str(h5zarr.inspect(place)).splitlines() if " = " in line]

    assert sorted(attributes(translated(tmp_path))) == sorted(attributes(OCEAN))


def test_the_command_prints_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refs = translated(tmp_path)
    assert main(["inspect", refs]) == 0
    assert capsys.readouterr().out == f"{h5zarr.inspect(refs)}\n"
    assert main(["inspect", refs, "--color", "always", "--path", "lat"]) == 0
    assert "\x1b[1mlat\x1b[0m" in capsys.readouterr().out


def test_the_result_has_a_short_repr_and_can_be_pickled(tmp_path: Path) -> None:
    found = h5zarr.inspect(translated(tmp_path, name="refs.parquet"), path="/sst")
    assert repr(found).endswith("refs.parquet: references to 1 file, 1 variable, 0 problems>")
    assert str(pickle.loads(pickle.dumps(found))) == str(found)


def test_the_source_is_not_read(tmp_path: Path) -> None:
    refs = made(tmp_path, v=(np.arange(4), {}))
    (tmp_path / "made.h5").unlink()
    assert "made.h5" in str(h5zarr.inspect(refs))


def test_only_the_manifests_of_what_is_shown_are_read(tmp_path: Path) -> None:
    refs = Path(translated(tmp_path, name="refs.parquet"))
    for path in (refs / "u").iterdir():
        path.unlink()
    assert "20 of 20" in str(h5zarr.inspect(refs, path="sst"))
    with pytest.raises(h5zarr.H5ZarrError, match="files with its references are missing"):
        h5zarr.inspect(refs)


def test_a_pattern_and_a_depth_select_a_part(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "groups.h5", "w") as file:
        file["a/b/deep"] = np.arange(3)
        file["top"] = np.arange(3)
        file["a"].attrs["note"] = "a group"
    refs = translated(tmp_path, tmp_path / "groups.h5")
    shown = str(h5zarr.inspect(refs)).splitlines()
    assert [line for line in shown if line.startswith("group:")] == ["group: /a", "group: /a/b"]
    assert '    note = "a group"' in shown
    deep = str(h5zarr.inspect(refs, path="deep"))
    assert "group: /a/b\n" in deep
    assert "top" not in deep
    assert "1 variable in 3 groups" in deep
    assert "    a  1 member, 1 attribute" in str(h5zarr.inspect(refs, depth=1)).splitlines()
    with pytest.raises(h5zarr.H5ZarrError, match="nothing matches /none"):
        h5zarr.inspect(refs, path="/none").lines()
    with pytest.raises(h5zarr.H5ZarrError, match="nothing matches /none"):
        h5zarr.inspect(refs, path="/none").to_json()


def test_groups_and_variables_that_are_alike_are_folded(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "many.h5", "w") as file:
        for number in range(30):
            file[f"v{number}"] = np.arange(3)
            file[f"g{number}/x"] = np.arange(3)
    found = h5zarr.inspect(translated(tmp_path, tmp_path / "many.h5"))
    assert "    … 20 more variables like these (use all=True)" in str(found).splitlines()
    assert "  … 29 more groups like /g0 (use all=True): g1, g10" in str(found)
    assert "…" not in "\n".join(found.lines(all=True))


def test_the_type_and_the_fill_value_of_each_kind(tmp_path: Path) -> None:
    pair = np.dtype([("a", "<i4"), ("b", "<f8")])
    chunked = {"chunks": (2,), "fillvalue": None}
    refs = made(
        tmp_path,
        big=(np.arange(4, dtype=">i4"), {**chunked, "fillvalue": -1}),
        flag=(np.array([True, False]), {}),
        pairs=(np.zeros(4, pair), chunked),
        text=(np.array([b"ab", b"c"]), {}),
        letters=(np.array(["é", "b"], object), {"dtype": h5py.string_dtype()}),
        complex=(np.ones(2, "c16"), {}),
        opaque=(np.array([b"abc"], "V3"), {}),
        level=(np.array([0, 1], "i1"), {"dtype": h5py.enum_dtype({"LOW": 0, "HIGH": 1}, "i1")}),
    )
    shown = "\n".join(h5zarr.inspect(refs).lines(width=200)).splitlines()
    lines = {line.split()[0]: line for line in shown if line.startswith("    ")}
    assert "int32 (big-endian)" in lines["big"]
    assert lines["big"].endswith("chunks (2) · 2 of 2 · 16 bytes · fill -1")
    assert "bool " in lines["flag"]
    assert "compound {a: int32, b: float64}" in lines["pairs"]
    assert "string (2 bytes)" in lines["text"]
    assert "string (utf-8, variable)" in lines["letters"]
    assert "complex128" in lines["complex"]
    assert "opaque (3 bytes)" in lines["opaque"]
    assert "enum int8 {HIGH=1, LOW=0}" in lines["level"]


def test_missing_chunks_are_counted(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "made.h5", "w") as file:
        file.create_dataset("v", shape=(100,), chunks=(10,), dtype="f4")[:10] = 1
    refs = translated(tmp_path, tmp_path / "made.h5", inline_bytes=0)
    shown = str(h5zarr.inspect(refs))
    assert "chunks (10) · 1 of 10 · 40 bytes" in shown
    assert "1 chunk referenced, 0 inlined, 9 missing" in shown


def test_references_of_other_tools(tmp_path: Path) -> None:
    array = {"zarr_format": 2, "shape": [6], "chunks": [2], "dtype": "<i2", "fill_value": 7, "order": "C"}
    array |= {"compressor": {"id": "lzma"}, "filters": None}
    url = "https://user:hunter2@host/data.nc?X-Amz-Signature=secret"
    attributes = {"_ARRAY_DIMENSIONS": ["x"], "odd": {"a": [1]}, "list": ["a", "b"], "numbers": [1, 2], "yes": True}
    entries: dict[str, Any] = {".zgroup": {"zarr_format": 2}, "v/.zarray": array, "v/.zattrs": attributes}
    refs = written(tmp_path, {**entries, "v/0": [url], "v/1": [url, 0, 4]})
    found = h5zarr.inspect(refs)
    shown = str(found).splitlines()
    assert shown[1:3] == ["  references in a JSON file, written by another tool", "  source: https://host/data.nc"]
    assert "    v  int16  (x=6)  chunks (2) · 2 of 3 · lzma · fill 7" in shown
    assert '        odd        = "{\\"a\\": [1]}"' in shown
    assert '        list       = "a", "b"' in shown
    assert "        numbers    = 1, 2 (int64)" in shown
    assert "        yes        = TRUE" in shown
    for text in (str(found), repr(found), repr(found.file), json.dumps(found.to_json())):
        assert "hunter2" not in text
        assert "secret" not in text


def test_several_sources_are_listed(tmp_path: Path) -> None:
    array = {"zarr_format": 2, "shape": [8], "chunks": [1], "dtype": "|i1", "fill_value": 0, "order": "C"}
    entries: dict[str, Any] = {
        ".zgroup": {"zarr_format": 2},
        "v/.zarray": {**array, "compressor": None, "filters": None},
    }
    refs = written(tmp_path, entries | {f"v/{number}": [f"s3://bucket/{number}.nc", 0, 1] for number in range(8)})
    shown = str(h5zarr.inspect(refs)).splitlines()
    assert shown[2:4] == ["  8 sources:", "    s3://bucket/0.nc"]
    assert shown[8] == "    … 3 more sources (use all=True)"
    assert "    s3://bucket/7.nc" in h5zarr.inspect(refs).lines(all=True)


def test_problems_and_warnings_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    array = {"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "<x9", "fill_value": 0, "order": "C"}
    group = {"zarr_format": 2}
    record = {"_nc_record": {"h5zarr": 99}}
    entries: dict[str, Any] = {".zgroup": group, ".zattrs": record, "g/.zgroup": group, "v/.zarray": array}
    refs = written(tmp_path, entries)
    assert main(["inspect", str(refs)]) == 1
    shown = capsys.readouterr().out
    assert "1 problem:\n  /v: " in shown
    assert "1 warning:\n  /: the record _nc_record is ignored" in shown


def test_a_record_that_does_not_fit_costs_nothing(tmp_path: Path) -> None:
    """References are untrusted: types that do not fit the values, and parts that do not exist."""
    array = {"zarr_format": 3, "node_type": "array", "shape": [2], "data_type": "int32", "fill_value": 0}
    array |= {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}, "dimension_names": ["x"]}
    array |= {
        "chunk_key_encoding": {"name": "default"},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    }
    array |= {"attributes": {"a": "text", "b": {"x": 1}, "_FillValue": "?"}}
    part = {"path": "_h5zarr_parts/w/0/w", "boxes": [[[0, 0, 2]]]}
    joined = {"w": {"dimensions": ["x"], "shape": [2], "axes": [0], "parts": [part]}}
    types = {"a": "float64", "b": [["y", "int8"]]}
    record = {
        "h5zarr": 1,
        "variables": {"v": {"types": types, "parameters": {"scale_factor": "none"}}},
        "joined": joined,
    }
    root = {"zarr_format": 3, "node_type": "group", "attributes": {"_nc_record": record}}
    shown = str(h5zarr.inspect(written(tmp_path, {"zarr.json": root, "v/zarr.json": array}))).splitlines()
    assert '        a          = "text"' in shown
    assert '        b          = "{\\"x\\": 1}"' in shown
    assert '        _FillValue = "?"' in shown
    assert "        one per file: scale_factor in none" in shown
    assert "        part 0, missing: x 0 to 1" in shown


def test_remote_references_without_a_known_name_are_found_by_their_content(tmp_path: Path) -> None:
    refs = Path(translated(tmp_path))
    with RangeServer({"/refs": refs.read_bytes(), "/refs.json": refs.read_bytes()}) as server:
        assert "20 of 20" in str(h5zarr.inspect(server.url("/refs")))
        assert "20 of 20" in str(h5zarr.inspect(server.url("/refs.json")))


@pytest.mark.parametrize("given", [OCEAN, "refs.json"])
def test_only_icechunk_has_branches(given: Path | str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = translated(tmp_path) if given == "refs.json" else str(given)
    assert main(["inspect", source, "--at", "main"]) == 2
    said = capsys.readouterr().err
    assert "only an Icechunk repository has branches, tags and snapshots" in said
    assert "Omit --at." in said


def test_damaged_references_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.json").write_text('{"version": 1, "refs": {".zgroup": "{}", "a/.zarray": "x"}}')
    assert main(["inspect", str(tmp_path / "bad.json")]) == 2
    assert "the metadata are not valid JSON" in capsys.readouterr().err


def test_zarr_data_are_not_references(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    for place in (tmp_path, tmp_path / "zarr.json"):
        assert main(["inspect", str(place)]) == 2
        assert "The data is Zarr already" in capsys.readouterr().err


def test_a_long_page_is_abbreviated(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "long.h5", "w") as file:
        for letter in "abcdefghijklmnop":
            variable = file.create_dataset(letter * 3, data=np.arange(2))
            for number in range(14):
                variable.attrs[f"note{number}"] = "x"
            variable.attrs["units"] = "m"
    shown = str(h5zarr.inspect(translated(tmp_path, tmp_path / "long.h5"))).splitlines()
    assert shown.count('        units = "m"') == 16
    assert "Attributes are shortened (all=True shows everything)." in shown


def test_an_absurd_grid_has_no_ratio(tmp_path: Path) -> None:
    """References are untrusted: the size of a chunk may exceed every number."""
    array = {"zarr_format": 2, "shape": [2**62] * 40, "chunks": [2**62] * 40, "dtype": "<f8", "fill_value": 0}
    array |= {"order": "C", "compressor": {"id": "zlib"}, "filters": None}
    entries: dict[str, Any] = {".zgroup": {"zarr_format": 2}, "v/.zarray": array}
    entries["v/" + ".".join("0" * 40)] = ["a.nc", 0, 5]
    assert "1 of 1 · deflate(1) · 5 bytes" in str(h5zarr.inspect(written(tmp_path, entries)))

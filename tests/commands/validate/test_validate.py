"""The whole of validate: input, report and exit code."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import h5zarr
from h5zarr.cli import main
from h5zarr.commands.validate.reading import decode_json, decode_parquet
from h5zarr.commands.validate.validate import hold_against
from h5zarr.errors import H5ZarrError, MalformedFile, Unsupported
from tests.collections_of_files import SAMPLES
from tests.commands.validate.made import Made, changed, make
from tests.servers import RangeServer


@pytest.fixture
def references(tmp_path: Path) -> Path:
    """References to a file that is not there any more."""
    source = tmp_path / "source.h5"
    with h5py.File(source, "w") as file:
        x = file.create_dataset("x", data=np.arange(8.0))
        x.make_scale("x")
        v = file.create_dataset("v", data=np.arange(8, dtype="i4"), chunks=(4,), compression="gzip")
        v.dims[0].attach_scale(x)
    h5zarr.translate(source, tmp_path / "refs.json", nz=True)
    source.unlink()
    return tmp_path / "refs.json"


def break_it(path: Path) -> None:
    document = json.loads(path.read_text())
    metadata = json.loads(document["refs"]["v/zarr.json"])
    document["refs"]["v/zarr.json"] = json.dumps({**metadata, "fill_value": "zero"})
    path.write_text(json.dumps(document))


def test_the_source_is_never_looked_at(references: Path) -> None:
    found = h5zarr.validate(references)
    assert isinstance(found, h5zarr.Validation)
    assert found.is_valid
    assert found.findings == []
    assert (found.zarr_format, found.container) == (3, "json")


def test_only_the_references_are_opened(references: Path, tmp_path: Path) -> None:
    document = json.loads(references.read_text())
    document["refs"]["v/c/0"] = [str(tmp_path / "secret.txt"), 0, 16]
    references.write_text(json.dumps(document))
    (tmp_path / "secret.txt").write_text("secret")
    script = (
        "import sys, h5zarr\n"
        "sys.addaudithook(lambda event, about: event in ('open', 'socket.connect') and print(event, about[0]))\n"
        "h5zarr.validate(sys.argv[1], nz=True)"
    )
    done = subprocess.run([sys.executable, "-c", script, references], capture_output=True, text=True, check=True)
    assert f"open {references}" in done.stdout
    assert "secret.txt" not in done.stdout
    assert "socket" not in done.stdout


def test_compressed_references_are_read(references: Path) -> None:
    packed = references.with_suffix(".json.gz")
    packed.write_bytes(gzip.compress(references.read_bytes()))
    assert h5zarr.validate(packed).to_json()["findings"] == h5zarr.validate(references).to_json()["findings"]


def test_a_coordinate_whose_values_are_elsewhere_is_not_checked() -> None:
    made = changed("json3", lambda made: made.refs.update({"x/c/1": ["s3://bucket/file.nc", 0, 4]}))
    result = hold_against(made.decode(), "made", nz=True)
    (one,) = result.not_checked
    assert (one.path, one.rule) == ("/x", "nz/dimension-coordinates")
    assert "not in the references" in one.reason
    assert result.findings == []


def test_what_a_codec_encodes_is_decoded_to_see_whether_it_is_monotonic() -> None:
    import zlib
    from base64 import b64encode

    def change(made: Made) -> None:
        made.array("x")["codecs"].append({"name": "numcodecs.zlib", "configuration": {"level": 1}})
        for number, values in enumerate(([1, 2], [2, 0])):
            content = zlib.compress(np.array(values, "<i2").tobytes())
            made.refs[f"x/c/{number}"] = "base64:" + b64encode(content).decode()

    found = hold_against(changed("json3", change).decode(), "made", nz=True).findings
    assert [one.rule for one in found] == ["nz/dimension-coordinates"]


def test_everything_is_found_at_once() -> None:
    def change(made: Made) -> None:
        made.array("v").update(shape=[4, -3], fill_value=None, node_type="array")
        made.array("x").update(data_type="int17")
        made.array("g/w").update(codecs=[])

    result = hold_against(changed("json3", change).decode(), "made")
    assert {one.path for one in result.errors} == {"/v", "/x", "/g/w"}
    assert {"zarr3/shape", "zarr3/fill-value", "zarr3/data-type", "zarr3/codecs"} <= {one.rule for one in result.errors}


def test_many_keys_of_one_kind_are_reported_in_a_few_lines() -> None:
    def change(made: Made) -> None:
        made.refs |= {f"v/c/{number}/9": ["s3://bucket/file.nc", 0, 16] for number in range(1000)}

    found = hold_against(changed("json3", change).decode(), "made").findings
    assert len(found) == 6
    assert "995 other keys" in found[-1].message


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"version": 1}', b'{"version": 1, "refs": {}}', b"{", b"\x89HDF"]
)
def test_other_files_than_references_are_an_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "refs.json"
    path.write_bytes(content)
    with pytest.raises(H5ZarrError):
        h5zarr.validate(path)
    assert main(["validate", str(path)]) == 2


def test_a_file_that_is_gone_is_an_error(tmp_path: Path) -> None:
    assert main(["validate", str(tmp_path / "gone.json")]) == 2


def test_metadata_that_are_text_in_base64_are_read() -> None:
    from base64 import b64encode

    made = make("json3")
    text = "base64:" + b64encode(json.dumps(made.nodes["x/zarr.json"]).encode()).decode()
    made.consolidated = False
    made.nodes["x/zarr.json"] = text
    assert [one.rule for one in hold_against(made.decode(), "made").findings] == ["xarray/consolidated"]


def test_references_whose_root_is_an_array_are_read() -> None:
    made = make("json3")
    made.nodes = {"zarr.json": made.nodes["one/zarr.json"]}
    made.refs, made.consolidated = {"c": made.refs["one/c"]}, False
    assert hold_against(made.decode(), "made").errors == []


@pytest.mark.parametrize("form", ["json", "json.gz", "parquet"])
def test_references_in_another_place_are_read(form: str, references: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    break_it(references)
    place = f"memory://validated/refs.{form}"
    if form == "parquet":
        h5zarr.convert(references, place)
    else:
        content = references.read_bytes()
        fsspec.filesystem("memory").pipe(place, content if form == "json" else gzip.compress(content))
    try:
        found = h5zarr.validate(place)
    finally:
        fsspec.filesystem("memory").rm("/validated", recursive=True)
    assert (found.references, found.container) == (place, form.partition(".")[0])
    assert "zarr3/fill-value" in {one.rule for one in found.errors}


# --- the command line


def test_valid_references_end_in_0_and_a_summary(references: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(references)]) == 0
    out = capsys.readouterr()
    assert out.err == ""
    assert out.out.startswith("0 errors, 0 warnings · ")


def test_an_error_ends_in_1_with_path_rule_and_remedy(references: Path, capsys: pytest.CaptureFixture[str]) -> None:
    break_it(references)
    assert main(["validate", str(references), "--quiet"]) == 1
    out = capsys.readouterr()
    assert out.out == ""
    assert "error: /v: the fill_value is not valid for int32" in out.err
    assert "[zarr3/fill-value: Data types: Permitted fill values]" in out.err
    assert "Write a value of the data type." in out.err


def test_warnings_end_in_0_and_are_left_out_when_quiet(references: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(references), "--nz"]) == 0
    assert capsys.readouterr().err == ""
    references.write_text(references.read_text().replace("netcdf_record", "_cdf_record"))
    assert main(["validate", str(references), "--nz"]) == 0
    assert "warning: /: " in capsys.readouterr().err
    assert main(["validate", "--quiet", "--nz", str(references)]) == 0
    assert capsys.readouterr().err == ""


def test_the_report_has_everything(references: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    break_it(references)
    assert main(["validate", str(references), "--report", str(tmp_path / "report.json")]) == 1
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["valid"] is False
    assert report["zarr_format"] == 3
    first = report["findings"][0]
    assert first.keys() == {"path", "rule", "level", "section", "message", "remedy"}
    assert "zarr3/fill-value" in report["rules"]
    assert not any(rule.startswith("nz/") for rule in report["rules"])
    capsys.readouterr()
    assert main(["validate", str(references), "--report", "-"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"] == report["findings"]


def test_references_on_a_server_are_validated(references: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = references.read_bytes()
    break_it(references)
    with RangeServer({"/good.json": good, "/bad.json": references.read_bytes()}) as server:
        assert main(["validate", server.url("/good.json")]) == 0
        assert capsys.readouterr().out.startswith("0 errors, 0 warnings · ")
        assert main(["validate", server.url("/bad.json"), "--quiet"]) == 1
        assert "error: /v: the fill_value is not valid for int32" in capsys.readouterr().err
        assert main(["validate", server.url("/gone.json?key=secret")]) == 2
        told = capsys.readouterr().err
        assert server.url("/gone.json") in told
        assert "secret" not in told
        assert {url.partition("?")[0] for url in server.counts.urls} == {"/good.json", "/bad.json", "/gone.json"}


def test_two_reference_files_are_refused(references: Path) -> None:
    assert main(["validate", str(references), str(references)]) == 2


# --- metadata may contain anything

ODD = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**20), 10**20),
        st.floats(),
        st.sampled_from(["", "0", "/", "int32", "r7", "\ud800", "base64:?", "{{x}}", "NaN", "|O", "<M8[s]", "bytes"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["name", "configuration", "id", "fields", "metadata", "a/b"]), inner, max_size=3
        ),
    ),
    max_leaves=6,
)


def places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the ways to everything in a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, one in inside for found in [(*above, key), *places(one, (*above, key))]]


@settings(max_examples=300)
@given(data=st.data(), form=st.sampled_from(["json3", "json2", "parquet3", "parquet2"]))
def test_every_rule_can_be_applied_to_any_metadata(data: st.DataObject, form: str) -> None:
    made = make(form)
    for _ in range(data.draw(st.integers(1, 3))):
        target = data.draw(st.sampled_from(["nodes", "refs", "document"]))
        ways = places(getattr(made, target)) or [("odd",)]
        *above, last = data.draw(st.sampled_from(ways))
        place = getattr(made, target)
        for key in above:
            place = place[key]
        place[last] = data.draw(ODD)
    if not isinstance(made.nodes.get("zarr.json", {}), dict) or data.draw(st.booleans()):
        made.consolidated = False
    try:
        raw = made.decode()
    except H5ZarrError:
        return
    result = hold_against(raw, "made", nz=True)
    assert not [one for one in result.not_checked if "could not be applied" in one.reason]
    json.dumps(result.to_json())


def test_parquet_references_without_metadata_are_refused_by_name() -> None:
    with pytest.raises(MalformedFile, match=r"^refs\.parquet: \.zmetadata contains no metadata") as caught:
        decode_parquet(b"{}", lambda names: {}, "refs.parquet")
    assert caught.value.remedy
    with pytest.raises(MalformedFile, match=r"^refs\.parquet: it is not a JSON object"):
        decode_parquet(b"[]", lambda names: {}, "refs.parquet")


def test_json_that_is_nested_too_deeply_is_not_json() -> None:
    with pytest.raises(MalformedFile, match=r"^refs\.json: it is not valid JSON: it is nested too deeply"):
        decode_json(b'{"a":' * 200_000, "refs.json")


def test_icechunk_repositories_have_no_rules(tmp_path: Path) -> None:
    pytest.importorskip("icechunk")
    out = f"icechunk+file://{tmp_path}/repository"
    h5zarr.translate(SAMPLES / "ocean.nc", out)
    with pytest.raises(Unsupported, match="this is an Icechunk repository, for which h5zarr has no rules") as caught:
        h5zarr.validate(out)
    assert caught.value.remedy == "Give references in JSON or Parquet."


def test_objects_without_a_filter_are_found() -> None:
    result = hold_against(
        changed("json2", lambda made: made.array("v").update(dtype="|O", filters=None)).decode(), "made"
    )
    found = [one for one in result.findings if one.message.startswith("the elements are objects")]
    assert [(one.message, one.remedy) for one in found] == [
        ("the elements are objects, but no filter says how they are stored", "Name the filter, such as vlen-utf8.")
    ]

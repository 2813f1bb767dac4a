from __future__ import annotations

import json
from pathlib import Path

import pytest

from h5zarr.cli import main
from tests.collections_of_files import SAMPLES

RECORDS = str(SAMPLES / "classic_several_records.nc")


def test_a_classic_file_is_shown_as_a_tree(capsys: pytest.CaptureFixture[str]):
    assert main(["inspect", RECORDS]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "  netCDF-3, CDF-1 · header of 424 bytes · 40 records of 112 bytes"
    assert "    time = 40 (UNLIMITED)" in lines
    assert "    time          float64  (time=40)        records · 8 bytes each from 0x1b4" in lines
    assert "    x             int32    (x=3)            fixed · 12 bytes at 0x1a8" in lines
    assert '        units = "hours since 1970-01-01"' in lines
    assert lines[-1] == "6 variables · a file of 4.92 kB"


def test_a_part_of_it(capsys: pytest.CaptureFixture[str]):
    assert main(["inspect", RECORDS, "--path", "w*", "--no-attributes"]) == 0
    output = capsys.readouterr().out
    assert "wind" in output
    assert "wide" in output
    assert "flag" not in output
    assert "_FillValue" not in output
    assert main(["inspect", RECORDS, "--path", "nothing"]) == 2
    assert main(["inspect", RECORDS, "--json", "--path", "nothing"]) == 2


def test_as_json(capsys: pytest.CaptureFixture[str]):
    assert main(["inspect", RECORDS, "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert described["format"] == {
        "name": "netCDF-3", "version": 1, "header_nbytes": 424, "records": 40, "record_nbytes": 112, "streaming": False,
    }  # fmt: skip
    assert described["groups"]["/"]["dimensions"]["time"] == {"length": 40, "unlimited": True}
    wind = described["datasets"]["/wind"]
    assert wind["layout"] == {"kind": "record", "address": 456, "nbytes": 12, "stride": 112}
    assert (wind["type"], wind["shape"], wind["max_shape"]) == ("float32", [40, 3], [None, 3])
    assert wind["fill"] == {"kind": "user", "value": -9.0}
    assert wind["attributes"]["scale_factor"] == {"type": "float32", "shape": [1], "value": [0.5]}


@pytest.mark.parametrize("name", ["classic_types_cdf5.nc", "classic_no_records.nc", "classic_unsigned.nc"])
def test_every_type_can_be_shown(name: str, capsys: pytest.CaptureFixture[str]):
    assert main(["inspect", str(SAMPLES / name)]) == 0
    assert main(["inspect", str(SAMPLES / name), "--json"]) == 0
    output = capsys.readouterr().out
    if name == "classic_types_cdf5.nc":
        assert 'latin    = "café"' in output
        assert "three_u8 = 0, 18446744073709551615, 17 (uint64)" in output


def test_streaming_and_truncated_files_are_described(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    main(["inspect", str(SAMPLES / "classic_streaming.nc")])
    assert "6 records of 12 bytes (counted: the header does not say)" in capsys.readouterr().out
    path = tmp_path / "cut.nc"
    path.write_bytes(Path(RECORDS).read_bytes()[:-300])
    assert main(["inspect", str(path)]) == 1
    assert "/wide: the file is truncated: 3 of 40 records are incomplete, " in capsys.readouterr().out

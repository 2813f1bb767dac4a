from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from h5zarr.commands.inspect.inspect_report import problem_lines, summary
from h5zarr.commands.inspect.inspect_text import open_page, render
from h5zarr.commands.inspect.view import View
from h5zarr.errors import Problem
from h5zarr.hdf5.datatype import Compound, CompoundMember, Enumeration
from h5zarr.hdf5.model import (
    ExternalLayout,
    ExternalLink,
    ExternalSegment,
    H5File,
    SoftLink,
    UserLink,
    VirtualLayout,
    VirtualMapping,
)
from h5zarr.hdf5.object_references import ObjectReference
from h5zarr.hdf5.selection import AllSelection, RegularSelection
from h5zarr.io.log import RequestLog
from tests.commands.inspect.made import (
    OBJECT,
    TEXT,
    attribute,
    dataset,
    dimension_list,
    file,
    floating,
    group,
    integer,
    ocean,
    scale,
    space,
    text,
)

OCEAN = """\
ocean.nc
  dimensions:
    time = 240 (UNLIMITED)
    lat  = 180
  variables:
    temp  int16    (time=240, lat=180)
        chunks (1, 180) · 200 of 240 · B-tree v1 · shuffle, deflate(4) · 18.0 kB (4.0:1) · fill -999
        units        = "K"
        scale_factor = 0.01 (float32)
        _FillValue   = -999
    time  float64  (time=240)
        contiguous 1.92 kB
        units = "days since 1970-01-01"
  links:
    broken -> (could not be read, see problems)
  attributes:
    title = "Ocean, a test"

group: /grid
  variables:
    mask  uint8  (4, 5)  contiguous 20 bytes
  links:
    again -> /temp (alias)
  attributes:
    note = "a grid"
"""


def lines(made: H5File, **view: object) -> list[str]:
    return render(open_page(made, View(**view)))  # type: ignore[arg-type]


def only(made: H5File, **view: object) -> str:
    return "\n".join(lines(made, **view))


def test_a_small_file_on_one_screen():
    assert only(ocean()) + "\n" == OCEAN


def test_storage_is_shown_beside_the_shape_if_there_is_room():
    assert "    time  float64  (time=240)           contiguous 1.92 kB" in lines(ocean(), width=140)


def test_the_summary_tells_what_it_took():
    log = RequestLog(rounds=7, requests=9, nbytes=812_000)
    expected = "4 datasets in 2 groups, 200 chunks, 1 problem · 7 rounds, 9 requests, 812 kB of 401 MB"
    assert summary(ocean(), 401_000_000, log) == expected


def test_problems_that_share_a_remedy_say_it_once():
    problems = (Problem("/a", "malformed", "cut", "Copy it."), Problem("/b", "malformed", "cut too", "Copy it."))
    assert list(problem_lines(problems)) == ["2 problems:", "  /a: cut", "  /b: cut too", "    Copy it."]


def test_everything_shows_netcdf_bookkeeping_too():
    whole = only(ocean(), everything=True)
    assert "lat   float32  (lat=180)" in whole
    assert 'CLASS = "DIMENSION_SCALE"' in whole
    assert "DIMENSION_LIST = {/time}, {/lat}" in whole


def test_attributes_can_be_left_out():
    assert " = " not in only(ocean(), attributes=False).replace("time = 240", "").replace("lat  = 180", "")


@pytest.mark.parametrize("pattern", ["temp", "/temp", "t?mp", "/**/temp", "/t*p"])
def test_a_pattern_shows_one_variable_and_its_dimensions(pattern: str):
    shown = only(ocean(), pattern=pattern)
    assert "temp  int16" in shown
    assert "time = 240" in shown
    assert "title" not in shown
    assert "time  float64" not in shown
    assert "mask" not in shown


def test_a_pattern_that_names_a_group_shows_all_of_it():
    assert lines(ocean(), pattern="/grid")[1:] == OCEAN.splitlines()[17:]


def test_a_pattern_finds_links():
    assert "    again -> /temp (alias)" in lines(ocean(), pattern="again")


def test_a_star_does_not_cross_groups():
    assert "mask" not in only(ocean(), pattern="/*a*")
    assert "mask" in only(ocean(), pattern="/*/ma*")


def test_a_pattern_that_matches_nothing_gives_an_empty_part():
    assert open_page(ocean(), View(pattern="nothing")).part.is_empty


def test_groups_below_the_depth_are_listed_not_opened():
    shown = lines(ocean(), depth=1)
    assert "    grid  2 members, 1 attribute" in shown
    assert not any("mask" in line for line in shown)


def test_a_thousand_numbered_datasets_are_folded():
    members = [dataset(100 + number) for number in range(1000)]
    shown = lines(file(group(1, {f"v{each.address - 100}": each.address for each in members}), *members))
    assert [line.split()[0] for line in shown[2:12]] == [f"v{number}" for number in range(10)]
    assert shown[-1] == "    … 990 more datasets like these (use all=True)"


def test_thirty_variables_with_names_of_their_own_are_all_shown():
    names = [chr(97 + number % 26) * (1 + number // 26) for number in range(30)]
    members = [dataset(100 + number) for number in range(30)]
    shown = only(file(group(1, dict(zip(names, range(100, 130), strict=True))), *members))
    assert shown.count("int32") == 30


def test_groups_alike_are_folded_to_the_first_unless_asked_for():
    inner = [dataset(100 + number) for number in range(6)]
    outer = [group(200 + number, {"data": 100 + number}) for number in range(6)]
    made = file(group(1, {f"scan{number}": 200 + number for number in range(6)}), *inner, *outer)
    shown = lines(made)
    assert shown[2] == "group: /scan0"
    assert shown[-1].startswith("  … 5 more groups like /scan0 (use all=True): scan1, scan2")
    assert sum(line.startswith("group:") for line in lines(made, pattern="/scan*/data")) == 6
    assert sum(line.startswith("group:") for line in lines(made, everything=True)) == 6


def test_a_long_file_tells_only_what_each_variable_is():
    notes = [text(f"note{number}", "x") for number in range(12)]
    members = [
        dataset(100 + n, None, space(2), text("units", "m"), text("long_name", "depth"), *notes) for n in range(20)
    ]
    shown = lines(file(group(1, {f"v{n}": 100 + n for n in range(20)}), *members))
    assert shown.count('        units = "m", long_name = "depth"') == 20
    assert not any("note1" in line for line in shown)
    assert "all=True" in shown[-1]


def test_links_say_where_they_lead():
    links = {
        "here": 2,
        "soft": SoftLink("soft", "/here"),
        "lost": SoftLink("lost", "nowhere/at/all"),
        "round": SoftLink("round", "round"),
        "far": ExternalLink("far", "other.h5", "/x"),
        "own": UserLink("own", 187, b""),
    }
    shown = lines(file(group(1, links), dataset(2)))
    assert shown[3:] == [
        "  links:",
        "    far   -> other.h5:/x (external)",
        "    lost  -> nowhere/at/all (dangling)",
        "    own   -> (user-defined link of class 187)",
        "    round -> round (dangling)",
        "    soft  -> /here",
    ]


def test_a_group_that_holds_itself_is_an_alias():
    assert lines(file(group(1, {"loop": 1})))[1:] == ["  links:", "    loop -> / (alias)"]


def test_an_empty_group_says_so():
    assert lines(file(group(1, {"g": 2}), group(2, {})))[-1] == "group: /g  (empty)"


def test_virtual_mappings_and_external_segments_are_listed():
    part = RegularSelection(start=(0, 0), stride=(1, 1), count=(1, 1), block=(1, 4))
    mapping = VirtualMapping(
        source_file="a.h5", source_dataset="/x", source_selection=AllSelection(), virtual_selection=part
    )
    virtual = dataset(2, None, space(9, 4), layout=VirtualLayout((mapping,) * 6))
    segment = ExternalSegment(file="raw.bin", address=2048, nbytes=None)
    external = dataset(3, None, space(8), layout=ExternalLayout((segment,)))
    shown = lines(file(group(1, {"v": 2, "e": 3}), virtual, external))
    assert shown[2:4] == ["    e  int32  (8)     external, 1 segment", '        "raw.bin" from byte 2,048, to the end']
    assert shown[4:6] == ["    v  int32  (9, 4)  virtual, 6 mappings", "        [0:1, 0:4] from a.h5:/x[...]"]
    assert shown[-1] == "        … 2 more mappings"


def test_members_of_a_wide_compound_are_listed_below_it():
    members = tuple(CompoundMember(name=f"field{n}", byte_offset=4 * n, datatype=integer()) for n in range(8))
    shown = lines(file(group(1, {"t": 2}), dataset(2, Compound(nbytes=32, members=members), space(3))))
    assert shown[2] == "    t  compound of 8 members  (3)  contiguous 96 bytes"
    assert shown[3].startswith("        {field0: int32, field1: int32")
    assert shown[4].endswith("field7: int32}")


def values(*attributes: object, **view: object) -> list[str]:
    return lines(file(group(1, {}, *attributes)), **view)[2:]  # type: ignore[arg-type]


def test_values_of_each_kind():
    boolean = Enumeration(nbytes=1, base=integer(1), members=(("FALSE", 0), ("TRUE", 1)))
    pair = Compound(
        nbytes=12,
        members=(
            CompoundMember(name="a", byte_offset=0, datatype=integer()),
            CompoundMember(name="b", byte_offset=4, datatype=floating(8)),
        ),
    )
    reference = np.empty(2, object)
    reference[:] = [ObjectReference(1), ObjectReference(None)]
    assert values(
        attribute("flag", np.array(1, np.int8), boolean),
        attribute("none", None, integer()),
        attribute("empty", np.zeros(0, np.int32), integer()),
        attribute("nan", np.array([np.nan, np.inf], np.float32), floating()),
        attribute("pair", np.array((1, 2.5), [("a", "i4"), ("b", "f8")]), pair),
        attribute("ref", reference, OBJECT),
        attribute("table", np.arange(4, dtype=np.int32).reshape(2, 2), integer()),
    ) == [
        "    flag  = TRUE",
        "    none  = (null) (int32)",
        "    empty = (empty) (int32)",
        "    nan   = nan, inf (float32)",
        "    pair  = {a=1, b=2.5}",
        "    ref   = /, nowhere (object reference)",
        "    table = 0, 1, 2, 3 (int32, 2 x 2)",
    ]


def test_long_values_are_cut_to_the_width_unless_everything_is_asked_for():
    many = attribute("many", np.arange(20_000), integer(8))
    long = text("long", "letters " * 100)
    for line in values(many, long):
        assert len(line) <= 100
    assert values(many)[0].endswith("… (20,000 values) (int64)")
    assert values(long)[0].endswith('…" (800 characters)')
    assert values(long, everything=True)[0].endswith('letters "')


def test_nothing_from_the_file_can_move_the_cursor():
    evil = file(group(1, {"a\x1b[2Jb\n": 2}, text("x\ry", 'say "hi"\x1b]0;\x07')), dataset(2))
    shown = only(evil)
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "a\\x1b[2Jb\\n" in shown
    assert 'x\\ry = "say \\"hi\\"\\x1b]0;\\x07"' in shown


def test_bytes_that_are_not_utf8_are_read_as_latin1():
    assert values(attribute("u", np.array(b"\xb5m", "S2"), TEXT)) == ['    u = "µm"']


def test_names_are_bold_in_colour():
    assert "    \x1b[1mtemp\x1b[0m  int16    (time=240, lat=180)" in lines(ocean(), colour=True)


def test_a_dimension_of_another_group_is_named_by_its_path():
    x = dataset(10, None, space(3), *scale("x"))
    v = dataset(11, None, space(3), dimension_list(10))
    made = file(group(1, {"a": 2, "b": 3}), group(2, {"x": 10}), group(3, {"v": 11}), x, v)
    assert "    v  int32  (/a/x=3)  contiguous 12 bytes" in lines(made)


def test_members_keep_the_order_of_creation():
    made = ocean()
    links = {name: replace(link, creation_order=5 - n) for n, (name, link) in enumerate(made.root.links.items())}
    made = replace(made, root=replace(made.root, links=links))
    names = [
        line.split()[0] for line in lines(made, attributes=False, width=140) if "contiguous" in line or "chunks" in line
    ]
    assert names == ["temp", "time", "mask"]

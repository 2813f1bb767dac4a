from __future__ import annotations

import struct

import numpy as np
import pytest

from h5zarr.netcdf3.classic_file import ClassicFile
from h5zarr.netcdf3.interpret import interpret_classic, missing_nbytes, present_records
from h5zarr.tree import StoredRun, Tree, Variable
from tests.netcdf3.classic import Reading, Var, encode_classic

AXES = {"t": None, "x": 3}


def record(name: str, code: str, count: int = 4) -> Var:
    return Var(name=name, code=code, dimensions=("t", "x"), values=np.ones((count, 3), code))


def scan(*variables: Var, version: int = 1, cut: int = 0, **options: object) -> ClassicFile:
    content = encode_classic(version, AXES, variables, **options)  # type: ignore[arg-type]
    return Reading(content[: len(content) - cut]).file


def run_of(tree: Tree, path: str) -> StoredRun:
    variable = tree.nodes[path]
    assert isinstance(variable, Variable)
    assert isinstance(variable.storage, StoredRun)
    return variable.storage


@pytest.mark.parametrize(("code", "nbytes"), [("i1", 3), ("S1", 3), ("i2", 6), ("i4", 12), ("f8", 24)])
def test_records_of_a_lone_variable_are_not_padded(code: str, nbytes: int):
    assert scan(record("a", code)).record_nbytes == nbytes


@pytest.mark.parametrize(("code", "nbytes"), [("i1", 4), ("S1", 4), ("i2", 8), ("i4", 12), ("f8", 24)])
def test_records_of_several_variables_are_padded_to_four(code: str, nbytes: int):
    assert scan(record("a", code), record("b", "i4")).record_nbytes == nbytes + 12


@pytest.mark.parametrize("version", [1, 2, 5])
@pytest.mark.parametrize("codes", [("i1",), ("i2",), ("f8",), ("i1", "f8"), ("f8", "i1"), ("i2", "i2", "i1")])
def test_streaming_counts_the_records_that_are_there(version: int, codes: tuple[str, ...]):
    variables = [record(f"v{number}", code, 5) for number, code in enumerate(codes)]
    file = scan(*variables, version=version, stated_records=-1)
    assert (file.record_count, file.problems) == (5, ())


def test_streaming_does_not_need_the_padding_of_the_last_record():
    variables = [record("a", "f8"), record("b", "i1")]
    assert scan(*variables, stated_records=-1, cut=1).record_count == 4
    file = scan(*variables, stated_records=-1, cut=2)
    assert file.record_count == 3
    assert "ends inside record 3: 26 of 28 bytes are there" in file.problems[0].message


def test_streaming_without_record_variables_has_no_records():
    fixed = Var(name="v", code="i4", dimensions=("x",), values=[1, 2, 3])
    assert scan(fixed, stated_records=-1).record_count == 0


def test_a_lone_variable_with_small_records_is_a_run_and_others_have_a_stride():
    lone = interpret_classic(scan(record("a", "i2")), "u")
    assert run_of(lone, "/a").stride is None
    both = interpret_classic(scan(record("a", "i2"), record("b", "i1")), "u")
    assert (run_of(both, "/a").stride, run_of(both, "/b").stride) == (12, 12)
    large = Var(name="v", code="f8", dimensions=("t", "y"), values=np.zeros((2, 128)))
    wide = Reading(encode_classic(1, {"t": None, "y": 128}, [large])).file
    assert run_of(interpret_classic(wide, "u"), "/v").stride == 1024


def test_a_cut_file_names_what_is_missing():
    variables = [record("a", "f8", 10), record("b", "i1", 10)]
    file = scan(*variables, cut=28 * 2 + 10)  # two records and part of the one before
    a, b = file.header.variables
    assert (present_records(file, a), missing_nbytes(file, a)) == ((7, 18), 54)
    assert (present_records(file, b), missing_nbytes(file, b)) == ((7, 0), 9)
    messages = [problem.message for problem in interpret_classic(file, "u").problems]
    assert "3 of 10 records are incomplete, 54 bytes are missing" in messages[0]
    assert "3 of 10 records are incomplete, 9 bytes are missing" in messages[1]


def test_missing_padding_of_the_last_record_causes_no_problem():
    assert interpret_classic(scan(record("a", "f8"), record("b", "i1"), cut=1), "u").problems == ()


def test_a_cut_fixed_variable_names_its_bytes():
    fixed = Var(name="v", code="i4", dimensions=("x",), values=[1, 2, 3])
    (problem,) = interpret_classic(scan(fixed, cut=5), "u").problems
    assert (problem.path, problem.kind) == ("/v", "truncated")
    assert "5 of 12 bytes are missing" in problem.message


def moved(content: bytes, begin: int, to: int) -> bytes:
    assert content.count(struct.pack(">I", begin)) == 1
    return content.replace(struct.pack(">I", begin), struct.pack(">I", to))


def test_values_inside_the_header_or_of_another_variable_are_refused():
    variables = [Var(name=name, code="i4", dimensions=("x",), values=[1, 2, 3]) for name in "ab"]
    content = encode_classic(1, {"x": 3}, variables)
    first, second = (variable.begin for variable in Reading(content).file.header.variables)
    inside = interpret_classic(Reading(moved(content, first, 20)).file, "u")
    assert list(inside.nodes) == ["/", "/b"]
    assert "inside the header" in inside.problems[0].message
    over = interpret_classic(Reading(moved(content, second, first + 4)).file, "u")
    assert list(over.nodes) == ["/"]
    assert ["overlap those of" in problem.message for problem in over.problems] == [True, True]


def test_records_that_run_into_a_fixed_variable_are_refused():
    variables = [Var(name="f", code="i4", dimensions=("x",), values=[1, 2, 3]), record("r", "i4")]
    content = encode_classic(1, AXES, variables)
    begin = Reading(content).file.header.variables[0].begin
    tree = interpret_classic(Reading(moved(content, begin, begin + 24)).file, "u")
    assert list(tree.nodes) == ["/"]


def test_the_record_dimension_must_be_the_first():
    variable = Var(name="v", code="i4", dimensions=("x", "t"), values=np.zeros((3, 0)))
    tree = interpret_classic(Reading(encode_classic(1, AXES, [variable], stated_records=2)).file, "u")
    assert "record dimension is not its first dimension" in tree.problems[0].message


def test_names_that_zarr_cannot_have_and_names_that_occur_twice_are_named():
    names = ["a/b", "..", "zarr.json", "ok", "ok"]
    variables = [Var(name=name, code="i4", dimensions=("x",), values=[1, 2, 3]) for name in names]
    tree = interpret_classic(Reading(encode_classic(1, {"x": 3}, variables)).file, "u")
    assert list(tree.nodes) == ["/", "/ok"]
    assert [problem.kind for problem in tree.problems] == ["unrepresentable"] * 3 + ["malformed"]


def test_two_dimensions_of_one_name_and_different_lengths_are_refused():
    variables = [Var(name="v", code="i1", dimensions=("xa", "xb"), values=np.zeros((2, 3)))]
    content = encode_classic(1, {"xa": 2, "xb": 3}, variables).replace(b"xb\0\0", b"xa\0\0")
    assert "two dimensions" in interpret_classic(Reading(content).file, "u").problems[0].message


def test_the_fill_is_the_attribute_if_it_is_of_the_type_and_the_default_else():
    def fill(code: str, value: object) -> bytes:
        attributes = {} if value is None else {"_FillValue": value}
        variable = Var(name="v", code=code, dimensions=("x",), values=np.zeros(3, code), attributes=attributes)
        found = interpret_classic(Reading(encode_classic(1, {"x": 3}, [variable])).file, "u").nodes["/v"]
        assert isinstance(found, Variable)
        assert found.fill is not None
        return found.fill.tobytes()

    assert fill("i2", np.int16(7)) == b"\0\x07"
    assert fill("i2", None) == fill("i2", np.float64(7)) == fill("i2", np.array([7, 7], "i2")) == b"\x80\x01"
    assert fill("S1", "*") == b"*"
    assert fill("f4", np.float32(-9)) == struct.pack(">f", -9)


def test_a_million_records_take_no_loop():
    variables = [record("a", "i2", 1), record("b", "f8", 1)]
    content = encode_classic(5, AXES, variables, stated_records=10**12)
    tree = interpret_classic(Reading(content).file, "u")
    assert "1,000,000,000,000 records" in tree.problems[0].message

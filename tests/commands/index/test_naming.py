"""Whatever sources are called, their outputs have names of their own, below the directory of the index."""

from __future__ import annotations

import os
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h5zarr.commands.catalog.place import STATE
from h5zarr.commands.index.naming import Names, UnclearTemplate, check_template, digest

SUFFIXES = (".json", ".json.zst", ".parquet")
TEMPLATES = (
    "{path}",
    "{name}",
    "{directory}/{stem}",
    "{stem}-{hash}",
    "x/{hash}",
    "_h5zarr/{name}",
    "{directory}{name}",
)
PIECES = st.sampled_from(
    [
        "a",
        "A",
        "..",
        ".",
        "",
        "_h5zarr",
        "_H5Zarr",
        "a.json",
        "a.nc",
        "ß",
        "SS",
        "İ",
        "\u00e9",
        "e\u0301",
        "%2F",
        "x" * 300,
        "\0",
    ]
)
PATHS = st.lists(PIECES | st.text(max_size=8), min_size=1, max_size=4).map("/".join).filter(bool)
LISTS = st.lists(PATHS, unique=True, max_size=30)


def named(paths: list[str], template: str = "{path}", suffix: str = ".json") -> dict[str, str]:
    names = Names(template, suffix)
    return {path: names.give(f"s3://bucket/{path}", path) for path in paths}


@given(LISTS, st.sampled_from(TEMPLATES), st.sampled_from(SUFFIXES))
def test_no_two_outputs_are_the_same_file_on_any_file_system(paths: list[str], template: str, suffix: str) -> None:
    outputs = list(named(paths, template, suffix).values())
    for fold in (str.lower, str.casefold, str.upper, lambda name: unicodedata.normalize("NFC", name)):
        assert len({fold(name) for name in outputs}) == len(paths)


@given(LISTS, st.sampled_from(TEMPLATES), st.sampled_from(SUFFIXES))
def test_no_output_is_outside_of_the_directory_or_among_what_is_the_index_s_own(
    paths: list[str], template: str, suffix: str
) -> None:
    for name in named(paths, template, suffix).values():
        parts = name.split("/")
        assert os.path.normpath(os.path.join("/refs", name)) == f"/refs/{name}"
        assert not {"", ".", ".."} & set(parts)
        assert parts[0].lower() != STATE
        assert name.endswith(suffix)
        assert all(len(part.encode()) <= 255 for part in parts)
        assert len(name.encode()) <= 800
        assert not set(name) & set('\0\n\\:*?"<>|{}[]#')


@given(LISTS, st.sampled_from(TEMPLATES), st.sampled_from(SUFFIXES))
def test_no_output_is_a_directory_of_another(paths: list[str], template: str, suffix: str) -> None:
    outputs = [name.lower() for name in named(paths, template, suffix).values()]
    assert not [(one, other) for one in outputs for other in outputs if other.startswith(f"{one}/")]


@given(LISTS.flatmap(lambda paths: st.tuples(st.just(paths), st.permutations(paths))))
def test_names_do_not_depend_on_the_order_where_none_is_taken(both: tuple[list[str], list[str]]) -> None:
    first, second = named(both[0]), named(both[1])
    if first == {path: named([path])[path] for path in both[0]}:
        assert second == first


@given(LISTS, LISTS)
def test_names_that_were_given_before_are_not_given_again(before: list[str], now: list[str]) -> None:
    taken = list(named(before).values())
    names = Names("{path}", ".json", taken)
    given_now = [names.give(f"s3://other/{path}", path) for path in now]
    assert not {name.lower() for name in taken} & {name.lower() for name in given_now}


def test_a_source_that_is_named_after_the_name_of_another_does_not_take_its_place() -> None:
    mark = digest("s3://bucket/a")
    outputs = named(["A", f"a-{mark}", f"a-{digest(mark)}", "a"])
    assert len({name.casefold() for name in outputs.values()}) == 4


def test_a_name_is_the_path_with_the_suffix() -> None:
    assert named(["2024/ocean.nc"]) == {"2024/ocean.nc": "2024/ocean.nc.json"}
    assert named(["2024/ocean.nc"], "{directory}/{stem}") == {"2024/ocean.nc": "2024/ocean.json"}
    assert named(["2024/ocean.nc"], "all/{name}") == {"2024/ocean.nc": "all/ocean.nc.json"}
    assert named(["ocean.nc"], "{hash}") == {"ocean.nc": f"{digest('s3://bucket/ocean.nc')}.json"}


def test_illegal_characters_in_names_are_escaped_as_in_urls() -> None:
    assert named(["a b.nc", "50%.nc", "a?#.nc", "a[1].nc", "../up.nc"]) == {
        "a b.nc": "a b.nc.json",
        "50%.nc": "50%25.nc.json",
        "a?#.nc": "a%3F%23.nc.json",
        "a[1].nc": "a%5B1%5D.nc.json",
        "../up.nc": "%2E%2E/up.nc.json",
    }


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{path", "is not a valid template"),
        ("{}", r"field \{\}"),
        ("{source}", r"known fields are \{path\}"),
        ("{path!r}", "field"),
        ("{path:>9}", "field"),
        ("{path.__class__}", "field"),
        ("out", r"'out' gives all sources the same name; use \{path\}, \{name\} or \{hash\}"),
        ("{directory}", "the same name"),
        ("", "the same name"),
    ],
)
def test_a_template_that_cannot_be_filled_in_is_refused(template: str, told: str) -> None:
    with pytest.raises(UnclearTemplate, match=told):
        check_template(template)

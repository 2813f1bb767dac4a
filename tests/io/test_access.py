from __future__ import annotations

import pickle

import pytest

from h5zarr.io.access import Access
from h5zarr.io.network import NetworkPolicy
from h5zarr.limits import Limits


def test_plain_options_become_one_value() -> None:
    access = Access.from_options({"key": "hush"}, {"attempts": 5}, {"depth": 3}, ["/data"])
    assert access.network == NetworkPolicy(attempts=5)
    assert access.limits == Limits(depth=3)
    assert access.allow == ("/data",)
    assert Access.from_options() == Access()


def test_secrets_are_not_shown_and_survive_pickling() -> None:
    access = Access(storage_options={"key": "hush"})
    assert "hush" not in repr(access)
    assert pickle.loads(pickle.dumps(access)) == access


def test_unknown_limits_are_named() -> None:
    with pytest.raises(ValueError, match=r"^limits has no 'width'; it has depth, object_count, "):
        Access.from_options(limits={"width": 1})


def test_anonymous_access_uses_the_words_of_each_file_system() -> None:
    access = Access(anon=True)
    assert access.options_for("s3://b/k") == {"anon": True}
    assert access.options_for("gs://b/k") == {"token": "anon"}
    assert access.options_for("https://h/p") == {}
    assert access.options_for("/data/a.nc") == {}
    assert access.options_for("simplecache::s3://b/k") == {"s3": {"anon": True}}
    assert Access(anon=True, storage_options={"anon": False}).options_for("s3://b/k") == {"anon": False}

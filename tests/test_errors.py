from __future__ import annotations

import pickle
import traceback

import pytest

from h5zarr.commands.translate.selecting import NothingSelected
from h5zarr.errors import H5ZarrError, MalformedFile, SourceChanged, SourceError, Unrepresentable, Unsupported
from h5zarr.filters.toolkit import FilterPackageMissing

KINDS = [
    MalformedFile,
    SourceError,
    SourceChanged,
    Unsupported,
    Unrepresentable,
    FilterPackageMissing,
    NothingSelected,
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_traceback_ends_with_the_remedy(kind: type[H5ZarrError]) -> None:
    last = traceback.format_exception_only(kind("it is broken"))[-1]
    assert last.strip() == kind.remedy != ""


@pytest.mark.parametrize("kind", KINDS)
def test_a_remedy_of_its_own_takes_the_place_of_the_usual_one(kind: type[H5ZarrError]) -> None:
    error = kind("it is broken", remedy="Mend it.")
    assert error.remedy == "Mend it."
    assert error.__notes__ == ["Mend it."]


def test_an_error_that_is_named_or_sent_to_another_process_says_its_remedy_once() -> None:
    error = SourceError("it is broken", remedy="Mend it.").naming("file.nc")
    received = pickle.loads(pickle.dumps(error))
    assert (str(received), received.remedy, received.__notes__) == ("file.nc: it is broken", "Mend it.", ["Mend it."])

from __future__ import annotations

from pathlib import Path

import pytest

from tests.containers.hierarchies import RawFile


@pytest.fixture
def raw_file(tmp_path: Path) -> RawFile:
    return RawFile(tmp_path / "data.bin")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore warnings of readers about names that are not yet in the specification."""
    for item in items:
        if "tests/zarr_model/" in item.nodeid:
            item.add_marker(pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3"))
            item.add_marker(pytest.mark.filterwarnings("ignore:The data type .* does not have a Zarr V3 spec"))

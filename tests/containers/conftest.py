from __future__ import annotations

from pathlib import Path

import pytest

from tests.containers.hierarchies import RawFile


@pytest.fixture
def raw_file(tmp_path: Path) -> RawFile:
    return RawFile(tmp_path / "data.bin")

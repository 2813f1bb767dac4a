import pytest

pytest.register_assert_rewrite("tests.hdf5.chunks.writing")

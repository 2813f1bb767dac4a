"""The files in sample_data/ can be read, can be made again, and are all in the table of its README."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

h5py = pytest.importorskip("h5py")
np = pytest.importorskip("numpy")

FOLDER = Path(__file__).parents[1] / "sample_data"
sys.path.insert(0, str(FOLDER))

from recipes import SAMPLES, Sample, Unavailable  # noqa: E402

pytestmark = pytest.mark.skipif(
    h5py.version.hdf5_version_tuple < (2, 0, 0), reason="libhdf5 before 2.0 does not read the newest of the files"
)

DATA = {".h5", ".nc", ".raw"}
NEVER_WRITTEN = {"chunked_undefined_never_written", "contiguous_undefined_never_written"}
UNREADABLE_BY_LIBHDF5 = {
    "fill_states_earliest.h5": NEVER_WRITTEN,
    "fill_states_latest.h5": NEVER_WRITTEN,
    "fill_text_vlen.h5": {"partial"},
}

every_sample = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES.keys())


def is_classic(path: Path) -> bool:
    return path.read_bytes()[:3] == b"CDF"


def describe(path: Path) -> dict[str, tuple[object, ...]]:
    """Return what the file holds: links with their types; objects with class, shape, datatype and attribute names.

    A netCDF classic file is told byte for byte: nothing but its recipe decides about them.
    """
    if is_classic(path):
        return {"content": (path.read_bytes(),)}
    description: dict[str, tuple[object, ...]] = {}
    with h5py.File(path, "r") as file:
        file.id.links.visit(lambda name, link: description.update({f"link {name!r}": (link.type,)}), info=True)

        def describe_object(name: str, item: h5py.HLObject) -> None:
            details: tuple[object, ...] = ()
            if isinstance(item, h5py.Dataset):
                datatype = item.id.get_type()
                details = (item.shape, item.maxshape, item.chunks, datatype.get_class(), datatype.get_size())
            description[name] = (type(item).__name__, sorted(item.attrs), *details)

        describe_object("/", file)
        file.visititems(describe_object)
    return description


def unreadable_datasets(path: Path) -> set[str]:
    """Return the names of datasets that can be read neither as numpy arrays nor as the bytes that are stored."""
    names = set()
    with h5py.File(path, "r") as file:

        def read(name: str, item: h5py.HLObject) -> None:
            if isinstance(item, h5py.Dataset) and not (is_array(item) or is_bytes(item)):
                names.add(name)

        file.visititems(read)
    return names


def is_array(dataset: h5py.Dataset) -> bool:
    try:
        dataset[()]
    except (TypeError, ValueError, KeyError, OSError):
        return False
    return True


def is_bytes(dataset: h5py.Dataset) -> bool:
    """Read without conversion, for the datatypes that numpy does not have."""
    datatype = dataset.id.get_type()
    space = dataset.id.get_space()
    nbytes = max(datatype.get_size(), 64)  # a revised reference takes 64 bytes in memory
    try:
        dataset.id.read(space, space, np.empty(space.get_simple_extent_npoints() * nbytes, "u1"), mtype=datatype)
    except (TypeError, ValueError, OSError):
        return False
    return True


@every_sample
def test_every_dataset_can_be_read(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    if is_classic(FOLDER / sample.name):
        pytest.skip("not HDF5; tests/netcdf3 compares it with the netCDF library")
    if sample.name.startswith("filters_plugins"):
        pytest.importorskip("hdf5plugin")
    monkeypatch.chdir(FOLDER)  # libhdf5 looks for external raw files in the current folder
    assert unreadable_datasets(FOLDER / sample.name) == UNREADABLE_BY_LIBHDF5.get(sample.name, set())


@pytest.fixture(scope="module")
def remade(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Return a folder with all files made again (virtual datasets need their sources), and why some could not be."""
    folder = tmp_path_factory.mktemp("sample_data")
    skipped = {}
    for sample in SAMPLES.values():
        try:
            sample.write(folder)
        except Unavailable as reason:
            skipped[sample.name] = str(reason)
    return folder, skipped


@every_sample
def test_recipe_makes_the_same_objects_again(sample: Sample, remade: tuple[Path, dict[str, str]]) -> None:
    folder, skipped = remade
    if sample.name in skipped:
        pytest.skip(skipped[sample.name])
    assert describe(folder / sample.name) == describe(FOLDER / sample.name)
    assert all((folder / companion).exists() for companion in sample.companions)


@every_sample
def test_recipe_gives_the_same_bytes_each_time(
    sample: Sample, remade: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    folder, skipped = remade
    if sample.name in skipped:
        pytest.skip(skipped[sample.name])
    assert sample.write(tmp_path).read_bytes() == (folder / sample.name).read_bytes()


def test_readme_lists_every_file() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    stored = {path.name for path in FOLDER.iterdir() if path.suffix in DATA}
    expected = {name for sample in SAMPLES.values() for name in (sample.name, *sample.companions)}
    assert stored == expected
    assert [name for name in sorted(expected) if f"| `{name}` |" not in readme] == []


def test_files_stay_small() -> None:
    sizes = {path.name: path.stat().st_size for path in FOLDER.iterdir() if path.suffix in DATA}
    assert sum(sizes.values()) < 1_650_000
    assert max(sizes, key=sizes.__getitem__) == "ocean.nc"

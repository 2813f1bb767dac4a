"""Filters that other packages add through entry points, with the example of docs/filters.md as such a package."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.filters.new_filters import (
    ALONE,
    READERS,
    ROOT,
    TRANSLATE,
    VALIDATE,
    VALUES,
    assert_read,
    chunks,
    code_blocks,
    run,
    run_in_turn,
    translate_and_read,
    write_filtered,
)

NUMBER = 32999


def install(site: Path, name: str, code: str, *groups: tuple[str, dict[str, str]]) -> Path:
    """Put a module and the metadata of a distribution with entry points into a directory, as pip would."""
    (site / f"{name}.py").write_text(code)
    metadata = site / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [line for group, points in groups for line in (f"[{group}]", *(f"{k} = {v}" for k, v in points.items()))]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return site


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A directory in which the package of the documentation is installed."""
    document, heading = ROOT / "docs" / "filters.md", "Filters from other packages"
    (code,) = code_blocks(document, heading, "python").values()
    (project,) = code_blocks(document, heading, "toml").values()
    points = tomllib.loads(project)["project"]["entry-points"]
    site = tmp_path / "site"
    site.mkdir()
    return install(site, "inverting", code, *points.items())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_inverted(tmp_path / "inverted.h5")


def write_inverted(path: Path, values: tuple[int, ...] = (7, 2**32 - 1)) -> Path:
    encoded = {origin: bytes(byte ^ 0xFF for byte in content) for origin, content in chunks().items()}
    return write_filtered(path, NUMBER, values, encoded)


@pytest.mark.parametrize("version", [3, 2])
def test_a_filter_of_another_package_is_translated_and_read(
    version: int, site: Path, source: Path, tmp_path: Path
) -> None:
    references = tmp_path / "refs.json"
    assert_read(translate_and_read(source, references, "--zarr-format", version, path=site))


def test_the_engine_reads_the_file_itself(site: Path, source: Path) -> None:
    assert run(READERS["engine"], source, path=site).stdout.strip() == str(VALUES.tolist())


def test_without_the_package_the_filter_is_named(site: Path, source: Path, tmp_path: Path) -> None:
    references = tmp_path / "refs.json"
    run(TRANSLATE, source, references, "--inline-bytes", 0, path=site)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    *readers, validated, translated = run_in_turn(
        *((reader, references) for reader in READERS.values()),
        (VALIDATE, references),
        (TRANSLATE, source, tmp_path / "again.json"),
        path=elsewhere,
    )
    readers += [run(reader, references, path=elsewhere, fails=True) for reader in ALONE.values()]
    assert len(readers) == 3
    for done in readers:
        assert "does not know filter 'inverting': install the package that provides it" in done.stderr
    assert validated.returncode
    assert '"inverting" is not a known HDF5 filter' in validated.stderr
    assert "filter 32999 (unnamed) is not known" in translated.stderr


CODEC = """
from dataclasses import dataclass
from h5zarr.filters.table import FilterKind
from numcodecs.abc import Codec
from zarr.abc.codec import BytesBytesCodec

FILTER = FilterKind(number=32999, name="inverting", module="own_codec", codec="example.invert")


def decode(content, values, nbytes):
    return bytes(byte ^ 0xFF for byte in content)


def to_codec(values, nbytes):
    return {"name": "example.invert", "configuration": {"strength": values[0]}}


def from_codec(configuration):
    return (configuration["strength"],)


@dataclass(frozen=True)
class Invert(BytesBytesCodec):
    is_fixed_size = True
    strength: int

    @classmethod
    def from_dict(cls, data):
        return cls(**data["configuration"])

    def to_dict(self):
        return {"name": "example.invert", "configuration": {"strength": self.strength}}

    async def _decode_single(self, chunk_bytes, chunk_spec):
        return chunk_spec.prototype.buffer.from_bytes(decode(chunk_bytes.to_bytes(), (), 0))

    def compute_encoded_size(self, nbytes, spec):
        return nbytes


class InvertV2(Codec):
    codec_id = "example.invert"

    def __init__(self, strength):
        self.strength = strength

    def encode(self, buf):
        raise NotImplementedError

    def decode(self, buf, out=None):
        return decode(bytes(buf), (), 0)
"""


@pytest.mark.parametrize("version", [3, 2])
def test_a_package_may_have_a_codec_of_its_own(version: int, source: Path, tmp_path: Path) -> None:
    site = tmp_path / "own"
    site.mkdir()
    points = {
        "h5zarr.filters": {"inverting": "own_codec:FILTER"},
        "zarr.codecs": {"example.invert": "own_codec:Invert"},
        "numcodecs.codecs": {"example.invert": "own_codec:InvertV2"},
    }
    install(site, "own_codec", CODEC, *points.items())
    references = tmp_path / "refs.json"
    assert_read(translate_and_read(source, references, "--zarr-format", version, path=site))
    text = references.read_text()
    assert "example.invert" in text
    assert "h5zarr.filter" not in text


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise OSError('no library')", "no library"),
        ("FILTER = 3", "it is not a FilterKind, but int"),
        ("from h5zarr.filters.table import FilterKind; FILTER = FilterKind(1, 'mine', 'bad')", "number 1 is already"),
        ("from h5zarr.filters.table import FilterKind; FILTER = FilterKind(99, 'lz4', 'bad')", "the name lz4 is"),
    ],
    ids=["import fails", "another type", "number taken", "name taken"],
)
def test_an_entry_point_that_cannot_be_used_is_skipped_with_a_warning(
    code: str, reason: str, site: Path, source: Path, tmp_path: Path
) -> None:
    install(site, "bad", code, ("h5zarr.filters", {"bad": "bad:FILTER"}))
    references = tmp_path / "refs.json"
    translated, read = run_in_turn(
        (TRANSLATE, source, references, "--inline-bytes", 0), (READERS["store"], references), path=site
    )
    assert f"h5zarr skips the filter 'bad' (bad:FILTER): {reason}" in translated.stderr
    assert read.stdout.strip() == str(VALUES.tolist())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise KeyError('odd')", "filter 32999 (inverting) does not decode: 'odd'"),
        ("return bytes(10**6)", "filter 32999 (inverting) returns 1000000 bytes for 120"),
    ],
    ids=["raises", "returns too much"],
)
def test_a_decoder_that_fails_makes_the_chunk_malformed(body: str, message: str, source: Path, tmp_path: Path) -> None:
    site = tmp_path / "failing"
    site.mkdir()
    code = "from h5zarr.filters.table import FilterKind\n\nFILTER = FilterKind(32999, 'inverting', 'failing')\n\n\n"
    install(
        site,
        "failing",
        f"{code}def decode(content, values, nbytes):\n    {body}\n",
        ("h5zarr.filters", {"i": "failing:FILTER"}),
    )
    references = tmp_path / "refs.json"
    for done in translate_and_read(source, references, path=site, fails=True).values():
        assert done.returncode
        assert "MalformedFile: " in done.stderr
        assert message in done.stderr


def test_files_without_new_filters_do_not_look_for_packages(site: Path, tmp_path: Path) -> None:
    sample = ROOT / "sample_data" / "ocean.nc"
    script = f"{TRANSLATE.replace('sys.exit(', '(')}; assert 'importlib.metadata' not in sys.modules"
    run(script, sample, tmp_path / "refs.json", path=site)

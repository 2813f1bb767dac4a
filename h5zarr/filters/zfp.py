"""Filter 32013, zfp: one zfp stream without its header, which the client data hold. Source: H5Zzfp.c of H5Z-ZFP.

zfp loses precision, unless it is used in its reversible mode. Values come back as they do from HDF5.
"""

from __future__ import annotations

import math

import numpy as np

from h5zarr.errors import MalformedFile
from h5zarr.filters.bounds import check_room
from h5zarr.filters.optional import load
from h5zarr.filters.settings import settings_of
from h5zarr.filters.zfp_settings import EXACT_EXPONENT, LEAST_EXPONENT, Settings

__all__ = ["Settings", "decode", "encode"]


def decode(content: bytes, values: tuple[int, ...], nbytes: int) -> bytes:
    """Return the values.

    zfp reads on where a stream ends too early, so zeros follow it, as many as any stream of these settings can need.
    """
    settings = settings_of(Settings, values)
    check_room(settings.nbytes, nbytes, "zfp stream")
    if 8 * len(content) < settings.least_nbits():
        raise MalformedFile(f"zfp stream of {len(content)} bytes is too short for {settings.shape} values")
    zfpy = load("zfpy", "zfp")
    header, nbits = settings.header()
    stream = _joined(header, nbits, content.ljust(settings.greatest_nbytes(), b"\0"))
    try:
        decoded = zfpy.decompress_numpy(stream)
    except (RuntimeError, ValueError, TypeError) as error:
        raise MalformedFile(f"zfp stream does not decompress: {error}") from error
    return decoded.astype(settings.stored_dtype()).tobytes()  # type: ignore[no-any-return]


def encode(content: bytes, values: tuple[int, ...]) -> bytes:
    """Return the stream, without a header. The parameters must be those of one of zfp's modes."""
    settings = settings_of(Settings, values)
    if len(content) != settings.nbytes:
        raise ValueError(f"zfp is set up for {settings.nbytes} bytes, not {len(content)}")
    zfpy = load("zfpy", "zfp")
    numbers = np.frombuffer(content, settings.stored_dtype()).astype(settings.dtype).reshape(settings.shape)
    stream = zfpy.compress_numpy(numbers, **_mode(settings), write_header=False)
    return bytes(stream)


def _mode(settings: Settings) -> dict[str, float]:
    """Return what zfpy is to be told. Modes are combinations of the parameters; others it cannot write."""
    if settings.minbits == settings.maxbits:
        return {"rate": settings.maxbits / 4 ** len(settings.shape)}
    if settings.minexp == EXACT_EXPONENT:
        return {}
    if settings.minexp > LEAST_EXPONENT and settings.maxprec == 64:
        return {"tolerance": math.ldexp(1.0, settings.minexp)}
    if settings.minexp == LEAST_EXPONENT:
        return {"precision": settings.maxprec}
    raise ValueError("zfp streams with these parameters can be read, but not written")


def _joined(header: int, nbits: int, content: bytes) -> bytes:
    """Return the stream behind its header. Bits are in the order of a little-endian number, and not aligned."""
    shift = nbits % 8
    head = header.to_bytes(-(-nbits // 8), "little")
    if not shift:
        return head + content
    stored = np.frombuffer(content, np.uint8)
    shifted = np.zeros(len(content) + 1, np.uint8)
    shifted[:-1] = stored << shift
    shifted[1:] |= stored >> (8 - shift)
    shifted[0] |= head[-1]
    return head[:-1] + shifted.tobytes()

"""The few functions of libhdf5 that h5py does not offer, called in the very library that h5py loaded."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import h5py

from .catalogue import Unavailable

IDENTIFIER = ctypes.c_int64
UNSIGNED = ctypes.c_uint
SIZE = ctypes.c_size_t
POINTER = ctypes.c_void_p
TEXT = ctypes.c_char_p

PARAMETERS: dict[str, tuple[Any, ...]] = {
    "H5Dcreate2": (IDENTIFIER, TEXT, IDENTIFIER, IDENTIFIER, IDENTIFIER, IDENTIFIER, IDENTIFIER),
    "H5Dwrite": (IDENTIFIER, IDENTIFIER, IDENTIFIER, IDENTIFIER, IDENTIFIER, POINTER),
    "H5Dclose": (IDENTIFIER,),
    "H5Acreate2": (IDENTIFIER, TEXT, IDENTIFIER, IDENTIFIER, IDENTIFIER, IDENTIFIER),
    "H5Awrite": (IDENTIFIER, IDENTIFIER, POINTER),
    "H5Aclose": (IDENTIFIER,),
    "H5Lregister": (POINTER,),
    "H5Lunregister": (ctypes.c_int,),
    "H5Lcreate_ud": (IDENTIFIER, TEXT, ctypes.c_int, POINTER, SIZE, IDENTIFIER, IDENTIFIER),
    "H5Pset_chunk_opts": (IDENTIFIER, UNSIGNED),
    "H5Pset_deflate": (IDENTIFIER, UNSIGNED),
    "H5Pset_fill_value": (IDENTIFIER, IDENTIFIER, POINTER),
    "H5Pset_istore_k": (IDENTIFIER, UNSIGNED),
    "H5Pset_link_phase_change": (IDENTIFIER, UNSIGNED, UNSIGNED),
    "H5Pset_mdc_image_config": (IDENTIFIER, POINTER),
    "H5Pset_shared_mesg_index": (IDENTIFIER, UNSIGNED, UNSIGNED, UNSIGNED),
    "H5Pset_shared_mesg_nindexes": (IDENTIFIER, UNSIGNED),
    "H5Pset_shared_mesg_phase_change": (IDENTIFIER, UNSIGNED, UNSIGNED),
    "H5Pset_sym_k": (IDENTIFIER, UNSIGNED, UNSIGNED),
    "H5Rcreate_attr": (IDENTIFIER, TEXT, TEXT, IDENTIFIER, POINTER),
    "H5Rcreate_object": (IDENTIFIER, TEXT, IDENTIFIER, POINTER),
    "H5Rcreate_region": (IDENTIFIER, TEXT, IDENTIFIER, IDENTIFIER, POINTER),
    "H5Rdestroy": (POINTER,),
    "H5Tcopy": (IDENTIFIER,),
    "H5Tset_order": (IDENTIFIER, ctypes.c_int),
}
GIVES_IDENTIFIER = frozenset({"H5Dcreate2", "H5Acreate2", "H5Tcopy"})


@cache
def library() -> ctypes.CDLL:
    """Return libhdf5, reached through one of h5py's own extension modules, so that it is never a second copy."""
    loaded = ctypes.CDLL(h5py.h5.__file__)
    if not hasattr(loaded, "H5open"):
        raise Unavailable("libhdf5 is not reachable through h5py on this platform")
    return loaded


def call(name: str, *arguments: Any) -> int:
    """Call a function of libhdf5 and return what it returns. h5py's identifiers may be given as they are."""
    function = getattr(library(), name, None)
    if function is None:
        raise Unavailable(f"this libhdf5 has no {name}")
    function.argtypes = PARAMETERS[name]
    function.restype = IDENTIFIER if name in GIVES_IDENTIFIER else ctypes.c_int
    plain = [getattr(argument, "id", argument) for argument in arguments]
    result = int(function(*plain))
    if result < 0:
        raise RuntimeError(f"{name}{tuple(plain)} failed")
    return result


def predefined_type(name: str) -> int:
    """Return the identifier of a datatype that h5py has no name for, such as `H5T_STD_REF`."""
    try:
        return IDENTIFIER.in_dll(library(), f"{name}_g").value
    except ValueError as error:
        raise Unavailable(f"this libhdf5 has no {name}") from error

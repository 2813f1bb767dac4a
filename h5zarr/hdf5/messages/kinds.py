"""The types of header messages. Spec: IV.A.2."""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """Message types that matter to readers. Other types are skipped."""

    NIL = 0x0000
    DATASPACE = 0x0001
    LINK_INFO = 0x0002
    DATATYPE = 0x0003
    FILL_VALUE_OLD = 0x0004
    FILL_VALUE = 0x0005
    LINK = 0x0006
    EXTERNAL_FILES = 0x0007
    LAYOUT = 0x0008
    GROUP_INFO = 0x000A
    FILTERS = 0x000B
    ATTRIBUTE = 0x000C
    COMMENT = 0x000D
    MODIFICATION_TIME_OLD = 0x000E
    SHARED_TABLE = 0x000F
    CONTINUATION = 0x0010
    SYMBOL_TABLE = 0x0011
    MODIFICATION_TIME = 0x0012
    BTREE_RANKS = 0x0013
    DRIVER_INFO = 0x0014
    ATTRIBUTE_INFO = 0x0015
    REFERENCE_COUNT = 0x0016
    FILE_SPACE = 0x0017
    CACHE_IMAGE = 0x0018

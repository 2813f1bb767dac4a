"""The logger of the package, which reports the progress of long operations."""

from __future__ import annotations

import logging

LOG = logging.getLogger("h5zarr")
LOG.addHandler(logging.NullHandler())  # otherwise Python prints the warnings of a library that nobody configured

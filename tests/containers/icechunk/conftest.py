from __future__ import annotations

import contextlib

with contextlib.suppress(ImportError):
    import icechunk

    icechunk.set_logs_filter("error")

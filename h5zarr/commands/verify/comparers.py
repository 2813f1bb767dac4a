"""Open what references are compared with: a file, or the files of a cube."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager

from h5zarr.commands.verify.comparing import Comparer, Work
from h5zarr.commands.verify.cube_comparing import CubeComparer
from h5zarr.commands.verify.opening import open_truth


@contextmanager
def open_comparer(work: Work) -> Iterator[Comparer | CubeComparer]:
    """Open the file with another library, or let a cube open its files when it needs them. Raises H5ZarrError."""
    with warnings.catch_warnings():
        # Zarr warns that other implementations may lack some codecs and types.
        warnings.filterwarnings("ignore", module=r"zarr\.")
        if work.opened.cube is not None:
            with closing(CubeComparer(work, work.opened.cube)) as comparer:
                yield comparer
        else:
            with open_truth(work.source, work.access) as truth:
                yield Comparer(work, truth)

"""`python -m h5zarr`."""

import sys

from h5zarr.cli import main

if __name__ == "__main__":
    sys.exit(main())

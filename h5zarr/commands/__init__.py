"""The commands, one room each: `<name>/<name>.py` has the function behind `h5zarr.<name>` and `h5zarr <name>`."""

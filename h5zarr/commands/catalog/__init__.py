"""The files of an archive, and the catalog of what is known about them."""

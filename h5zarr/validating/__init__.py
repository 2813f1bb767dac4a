"""Validating: the metadata of a reference file as they stand, held against the rules of the specifications."""

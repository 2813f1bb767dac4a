"""The validate command: check the raw metadata of a reference file against the rules of the specifications."""

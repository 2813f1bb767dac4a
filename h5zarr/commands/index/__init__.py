"""The index command: references for every file of a collection, kept up to date by repeated runs."""

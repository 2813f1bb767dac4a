"""Fuzzing: damaged copies of files, references and chunks, made by a seed. `python -m tests.fuzz --help` runs many."""

"""Indexing: references for all files of a collection, kept up to date by a job that runs again and again."""

"""References as a directory of Parquet files."""

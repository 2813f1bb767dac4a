"""References as one JSON document."""

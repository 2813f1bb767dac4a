"""Convert references from one container into another."""

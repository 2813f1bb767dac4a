"""Read values through a `Hierarchy`: find the chunks of a selection, fetch them together, decode them in place."""

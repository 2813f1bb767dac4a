"""Reading values through a `Hierarchy`: which chunks a selection needs, fetched together, decoded into place."""

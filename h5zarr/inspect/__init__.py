"""What a file holds, told to a person (`text`) or to a machine (`json`)."""

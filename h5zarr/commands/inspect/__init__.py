"""The inspect command: show what a file holds, to people (`inspect_text`) or machines (`json`)."""

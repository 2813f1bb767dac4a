"""One dataset from many files: which pieces there are, where each belongs, and how their arrays are joined."""

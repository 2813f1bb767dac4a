"""The whole way: a file is translated, and what readers of the references see is compared with the file itself."""

"""The check command: can these files be virtualised and combined, and what does it cost to read them that way?"""

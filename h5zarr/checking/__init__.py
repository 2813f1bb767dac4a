"""Can these files be virtualised, what does it cost to read them that way, and can they be combined?"""

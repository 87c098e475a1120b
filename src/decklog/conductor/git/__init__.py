"""Git as the conductor uses it: on objects without anybody's settings, and on refs of its own."""

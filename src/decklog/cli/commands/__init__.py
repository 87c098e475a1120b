"""Commands written by hand, one file a group."""

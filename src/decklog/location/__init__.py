"""Where the log of a folder is, and whether its user said yes to it."""

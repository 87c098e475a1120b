"""What the exports to other tools share: the walk over a run, the text files they write, and the report of what has no place."""

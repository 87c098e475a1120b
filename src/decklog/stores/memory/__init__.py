"""What was learned: lessons, error patterns, strategies and learnings."""

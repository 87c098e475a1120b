"""Record an agent's loop in Python: runs, steps, tool calls and their costs."""

"""An agent's loop in Python that records itself: runs, steps, calls of tools, and what they cost."""

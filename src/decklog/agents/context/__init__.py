"""Who calls, by name and session, and what it claimed last."""

"""Vibe Kanban: the tasks of every project, and what agents did for them."""

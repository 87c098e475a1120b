"""Hermes Kanban: the tasks of every board, their links, comments, events and runs."""

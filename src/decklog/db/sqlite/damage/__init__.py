"""Damaged SQLite files: what is damaged in a write-ahead log, and what of the tables can still be read."""

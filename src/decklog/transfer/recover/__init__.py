"""Recover a damaged SQLite file into a new log."""

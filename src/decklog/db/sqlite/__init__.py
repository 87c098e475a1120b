"""A log in a SQLite file, through apsw."""

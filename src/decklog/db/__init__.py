"""The only package that knows SQLite and PostgreSQL."""

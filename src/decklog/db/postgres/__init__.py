"""A log in a PostgreSQL database, through psycopg."""

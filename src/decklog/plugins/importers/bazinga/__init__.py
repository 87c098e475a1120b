"""bazinga-db's databases."""

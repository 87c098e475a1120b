"""The roles that a log on PostgreSQL is shared by, as SQL for its owner to run."""


def roles_sql(place: str = "public") -> str:
    """Return the statements that make the roles of readers, agents and managers, for a log in this schema."""
    from decklog.db.postgres.roles import statements

    return statements(place)

"""Takes a plan through a repository: agents in places of their own, checks by code, one merge lane, all of it on record."""

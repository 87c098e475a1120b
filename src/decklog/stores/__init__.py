"""One folder a domain; the domains know nothing of each other."""

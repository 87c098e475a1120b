"""The dashboard: pages of a log for a person, on this machine alone. It only calls the verbs that every surface has."""

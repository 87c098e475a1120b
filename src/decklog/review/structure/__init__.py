"""What a change does to what stands around it: callers, names, imports, documents, versions, tests, and its own message."""

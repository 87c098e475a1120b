"""The Agent Client Protocol, between an editor and an agent: what its messages mean, in both versions of it."""

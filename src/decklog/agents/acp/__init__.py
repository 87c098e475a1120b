"""Support for both versions of the Agent Client Protocol between editors and agents."""

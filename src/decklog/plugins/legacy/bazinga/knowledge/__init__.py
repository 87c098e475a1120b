"""Context packages, consumption, error patterns and strategies."""

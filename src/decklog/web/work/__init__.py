"""Work items on the web: steps as they come, the change so far, comments on its lines, and landing."""

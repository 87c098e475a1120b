"""The pages of the dashboard, one module each: the data loaded from the log, and its presentation."""

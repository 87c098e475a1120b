"""Sessions, task groups, plans, criteria, states and the dashboard's snapshot."""

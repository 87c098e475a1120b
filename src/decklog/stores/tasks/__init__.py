"""What is to be done: tasks with leases, groups, plans and success criteria."""

"""What people say to the agents, and the daily report."""

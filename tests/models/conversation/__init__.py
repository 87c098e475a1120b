"""Messages of people to the agents, and the daily report."""

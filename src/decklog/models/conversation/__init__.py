"""What people say to the agents: understood by exact commands or a model, done by verbs that exist, and summed up each day."""

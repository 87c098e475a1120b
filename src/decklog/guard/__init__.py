"""What the policy says of what an agent is about to do, for whoever stands between an agent and its tools."""

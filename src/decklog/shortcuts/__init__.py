"""The short way for agents: verbs that find run, task, worker and fence by themselves, for whichever surface an agent calls."""

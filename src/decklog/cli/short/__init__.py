"""The short way for agents: ten commands that find run, task, worker and fence by themselves."""

"""Origins of lines: the sessions, tasks, reviews, approvals and cost behind files and commits."""

"""Why a line is as it is: sessions, tasks, reviews, approvals and cost behind the lines of files and commits."""

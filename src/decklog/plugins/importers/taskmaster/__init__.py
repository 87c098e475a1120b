"""Task Master: the tasks and subtasks of every tag."""

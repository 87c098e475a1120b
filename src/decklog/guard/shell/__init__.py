"""Commands and background processes, each with a supervisor that outlives its starter."""

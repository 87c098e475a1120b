"""Programs that work on a piece: described by data, started under a supervisor, watched, adopted after a crash."""

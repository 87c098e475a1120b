"""Commands and background processes, and a supervisor that outlives whoever started them."""

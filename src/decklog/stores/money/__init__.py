"""What is spent, what it costs, and how much may be."""

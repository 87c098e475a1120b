"""Several machines at one run: who each is, how tips travel between them, and what one takes up from another."""

"""One seam to models: what is asked, of whom, for how much, and what came of it, all of it on record."""

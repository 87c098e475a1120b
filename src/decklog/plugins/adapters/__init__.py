"""For builders: loops of their own, and the frameworks they use, recorded into a log without changing how they work."""

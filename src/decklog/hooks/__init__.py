"""What agents' programs call at every step of a session. It never stops an agent by accident, and costs little."""

"""What work leaves behind: states, checkpoints, artifacts and skill outputs."""

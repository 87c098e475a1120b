"""The review gate: stages that check a change before it is published, and the verdict that follows."""

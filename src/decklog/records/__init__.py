"""Records as frozen dataclasses, their operations, values and fork rules."""

"""RunStore's databases."""

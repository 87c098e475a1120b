"""What a person does from the dashboard: forms that pause, stop, retry, requeue, raise budgets, answer, write and land."""

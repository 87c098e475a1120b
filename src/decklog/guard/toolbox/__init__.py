"""The toolbox: which tools there are, what guards a call, and how it goes on record."""

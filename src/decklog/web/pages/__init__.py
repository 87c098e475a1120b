"""The places of the dashboard, one module each: what it reads of the log, and what it makes of it."""

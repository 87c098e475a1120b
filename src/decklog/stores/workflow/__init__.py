"""Who comes next and what they get: the workflow, its router, context packages and CI."""

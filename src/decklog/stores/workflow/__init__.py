"""The workflow, its router, context packages and CI."""

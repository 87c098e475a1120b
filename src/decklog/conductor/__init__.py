"""Run coding agents on a plan: each in its own workspace, checked by code, landed through a merge queue, and recorded."""

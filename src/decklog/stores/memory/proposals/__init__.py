"""Lessons that come by themselves: what happened is looked through for what proves a lesson, and that is proposed."""

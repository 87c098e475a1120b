"""Work items and the people around them: comments, messages, takeovers, and a live view."""

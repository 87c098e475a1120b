"""Claude Code: its hooks' payloads and its transcripts."""

"""The words for the state of things. Each has one tone in the terminal, the dashboard and reports."""

NEED, BAD, WARN, BUSY, HOLD, GOOD, DIM = "need", "bad", "warn", "busy", "hold", "good", "dim"
_WORDS = {
    # Only a person can continue this.
    NEED: ("needs attention", "open", "stop"),
    BAD: (
        *("stalled", "failed", "blocked", "given up", "fail", "error", "block", "damaged"),
        *("denied", "expired", "stale", "unknown", "lost"),
    ),
    WARN: ("warn", "critical", "flaky", "unproven", "request-changes", "not verified"),
    BUSY: ("running", "active", "planning", "in progress", "verifying", "work", "check", "plan", "landing"),
    HOLD: ("waiting", "paused"),
    GOOD: (
        *("done", "completed", "landed", "granted", "met", "ok", "pass", "passed", "succeeded", "answered", "sent", "verified"),
    ),
    DIM: ("idle", "pending", "waits", "ready", "cancelled", "abandoned", "skipped", "released", "superseded", "withdrawn"),
}
TONES = {word: tone for tone, words in _WORDS.items() for word in words}

"""Newcomers, played: sessions of real programs (`claude.jsonl`, `codex.jsonl`, without their prompts) in a fresh home."""

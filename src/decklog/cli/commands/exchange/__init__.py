"""What other tools and the log give each other: imports, exports, and keeping both in step."""

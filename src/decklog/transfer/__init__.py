"""Taking a log elsewhere and keeping it whole: export, import, move, backup, restore, recovery and retention."""

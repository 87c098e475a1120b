"""What an editor starts in an agent's place: it passes every word between the two on, puts it on record, and guards."""

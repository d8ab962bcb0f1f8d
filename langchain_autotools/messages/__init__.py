"""What the package reads in messages, or keeps in them: calls, metadata, run messages that carry others."""

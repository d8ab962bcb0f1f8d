"""Runs: all turns of one `invoke` or `stream`, with their limits, their settings, their result."""

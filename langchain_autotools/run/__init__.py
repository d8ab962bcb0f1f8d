"""Runs: all turns of one `invoke` or `stream`, with their limits, settings and result."""

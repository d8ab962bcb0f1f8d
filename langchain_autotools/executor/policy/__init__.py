"""Policies of tools: timeouts, attempts, caches and shortened results."""

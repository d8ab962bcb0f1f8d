"""Tool policies: timeouts, retries, caches and output limits."""

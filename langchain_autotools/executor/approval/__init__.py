"""Which calls wait for a human, what they are known by, and what lets them pass."""

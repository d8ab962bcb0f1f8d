"""kill -9 at random moments: what durable runs come to, counted outside the processes that are killed."""

"""Batches of calls, and the threads and tasks that run them."""

"""Vendors that speak chat completions in a dialect of their own."""

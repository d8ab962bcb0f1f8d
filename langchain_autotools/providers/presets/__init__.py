"""Vendors that speak a dialect of chat completions."""

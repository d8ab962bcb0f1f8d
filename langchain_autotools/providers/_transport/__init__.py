"""Bytes and connections: clients, requests with a deadline, and decoding of replies to events."""

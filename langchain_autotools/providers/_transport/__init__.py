"""Bytes on connections: clients, requests with a deadline, decoding of replies to events."""

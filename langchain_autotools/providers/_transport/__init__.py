"""Bytes and connections: clients, requests with a bound in time, and replies read into events."""

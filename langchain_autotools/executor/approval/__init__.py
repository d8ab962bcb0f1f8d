"""Approval of calls by a human: rules, identities and decisions."""

"""Servers of MCP, as they are and as they should not be."""

"""MCP servers of every kind, over real processes."""

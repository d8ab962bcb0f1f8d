"""Tools of MCP servers: one session for each server, opened once, for all calls of a model's runs."""

from .server import McpServer, mcp_server

__all__ = ["McpServer", "mcp_server"]

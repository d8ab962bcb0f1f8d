"""Tools of MCP servers, with servers of every kind, and with each version of the SDK that is installed."""

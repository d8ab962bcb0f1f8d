"""Data of messages: tool calls, metadata of the package, and run messages that carry other messages."""

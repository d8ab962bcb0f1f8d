"""From the bytes of a reply to a turn: wire events, tool calls in any dialect, and the verdict on which of them may run."""

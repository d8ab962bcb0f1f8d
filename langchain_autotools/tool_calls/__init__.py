"""Protocol detection: from the fragments of a streamed reply to whole tool calls, in any dialect, and the verdict on which may run."""

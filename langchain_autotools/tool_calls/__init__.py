"""Assembly of tool calls from the fragments of a streamed reply, in any dialect, with the verdict on which calls may run."""

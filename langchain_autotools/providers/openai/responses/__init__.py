"""OpenAI's Responses API as a wire of its own: items in, items out. Importing this package loads no SDK."""

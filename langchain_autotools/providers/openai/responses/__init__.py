"""OpenAI's Responses API. Importing this package loads no SDK."""

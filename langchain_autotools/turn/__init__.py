"""A turn: one request to a model and its reply, as LangChain's core asks for it."""

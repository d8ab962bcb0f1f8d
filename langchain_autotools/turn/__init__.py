"""A turn: one request to a model with its reply, in the interface of LangChain's core."""

"""A turn: one request to a model and its reply, in the interface of LangChain's core."""

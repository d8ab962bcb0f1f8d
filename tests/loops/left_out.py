"""The recorded loops that are not replayed, by their ids, with the reason. One that could be replayed fails the tests."""

_SEARCH = "OpenAI's `tool_search` run by the client is no function call: no LangChain message holds its answer"
_GROQ = "the server refuses its model's own call (`tool_use_failed`), from which this client made up a call: ChatOpenAI raises the error"
_MISTRAL = "`document_url` is a part of Mistral's own: ChatOpenAI refuses a file by its address, which OpenAI does not take"

_PYDANTIC = "pydantic/pydantic-ai:tests"
_MEDIA = f"{_PYDANTIC}/models/cassettes/test_multimodal_tool_returns/test_multimodal_tool_return_matrix"

LEFT_OUT = {
    "langchain-ai/langchain:langchain_openai-1.7.4/tests/cassettes/test_client_executed_tool_search.yaml.gz#0": _SEARCH,
    f"{_PYDANTIC}/cassettes/test_tool_search/test_openai_client_tool_search_streaming.yaml#0": _SEARCH,
    f"{_PYDANTIC}/cassettes/test_tool_search/test_openai_execution_client_round_trip.yaml#0": _SEARCH,
    f"{_PYDANTIC}/models/cassettes/test_groq/test_tool_use_failed_error.yaml#0": _GROQ,
    f"{_PYDANTIC}/models/cassettes/test_groq/test_tool_use_failed_error_streaming.yaml#0": _GROQ,
    f"{_MEDIA}[direct-url-document-mistral].yaml#0": _MISTRAL,
    f"{_MEDIA}[tool_return_content-url-document-mistral].yaml#0": _MISTRAL,
}

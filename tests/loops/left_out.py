"""The recorded loops that are not replayed, by their ids, with the reason. One that could be replayed fails the tests."""

_GROQ = "the server refuses its model's own call (`tool_use_failed`), from which this client made up a call: ChatOpenAI raises the error"

LEFT_OUT = {
    "pydantic/pydantic-ai:tests/models/cassettes/test_groq/test_tool_use_failed_error.yaml#0": _GROQ,
    "pydantic/pydantic-ai:tests/models/cassettes/test_groq/test_tool_use_failed_error_streaming.yaml#0": _GROQ,
}

"""Libraries that look into a chat model, with ours in them: `pytest -m compat tests/compat`, with the extra `compat`.

Where one of these libraries is missing nothing here is collected, so asking for these tests there is an error of pytest's.
"""

from importlib.util import find_spec

LIBRARIES = (
    "langgraph_supervisor",
    "langgraph_swarm",
    "langgraph.checkpoint.sqlite",
    "deepagents",
    "langchain_anthropic",
    "langchain_google_genai",
    "langchain_mcp_adapters",
    "langchain_ollama",
    "langchain_openai",
)

collect_ignore_glob = [] if all(find_spec(name) for name in LIBRARIES) else ["test_*.py"]

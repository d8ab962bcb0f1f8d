"""The unit tests of LangChain's partner packages with our classes: `pytest -m partner tests/partner`, with the extra `partner`."""

from importlib.util import find_spec

CORE = ("freezegun", "grandalf", "langgraph_supervisor", "pytest_mock", "responses", "syrupy")
collect_ignore_glob = [] if all(find_spec(name) for name in CORE) else ["test_core_suites.py"]
collect_ignore_glob += [] if find_spec("langchain_openai") else ["test_middleware_suite.py"]
collect_ignore_glob += [] if find_spec("hatchling") and find_spec("blockbuster") else ["test_*.py"]

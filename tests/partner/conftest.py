"""The unit tests of LangChain's partner packages with our classes: `pytest -m partner tests/partner`, with the extra `partner`."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("hatchling") and find_spec("blockbuster") else ["test_*.py"]

"""Checks side by side: what each waits for, all wait for together."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor


def at_once(checks: Mapping[str, Callable[[], object]]) -> None:
    """All these checks hold; each in a thread of its own, so that their waits are one."""
    with ThreadPoolExecutor(len(checks)) as pool:
        made = {words: pool.submit(check) for words, check in checks.items()}
    assert {words: error for words, check in made.items() if (error := check.exception())} == {}

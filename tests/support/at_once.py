"""Checks side by side: what each waits for, all wait for together."""

import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor


def at_once(checks: Mapping[str, Callable[[], object]]) -> None:
    """Make all checks side by side, so that their waits are one.

    Raises:
        BaseExceptionGroup: What the checks raised, each with its words.
    """
    # Core makes a tool's schema under filters of its own, which are the process's: one thread ends those of another.
    with warnings.catch_warnings(), ThreadPoolExecutor(len(checks)) as pool:
        warnings.simplefilter("ignore", DeprecationWarning)
        made = {words: pool.submit(check) for words, check in checks.items()}
    errors = {words: error for words, check in made.items() if (error := check.exception())}
    for words, error in errors.items():
        error.add_note(words)
    if errors:
        raise BaseExceptionGroup(f"{len(errors)} of {len(made)} checks failed", list(errors.values()))


def with_time_for_it(check: Callable[[float], object], *seconds: float) -> None:
    """Make a check with so much time; where that did not do, on a slow machine, again with more. The last one must hold."""
    for some in seconds[:-1]:
        try:
            check(some)
        except (AssertionError, ExceptionGroup):
            continue
        return
    check(seconds[-1])

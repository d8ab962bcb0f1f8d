"""A progress bar for a batch: `show_progress=True` of `batch`, `abatch` and the like."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from typing import Any

from langchain_core.runnables import Runnable

from ..errors import ConfigurationError


class _Counted(Runnable[Any, Any]):
    """A runnable whose answers and errors are counted.

    Args:
        runnable: The runnable.
        count: Called after each.
    """

    def __init__(self, runnable: Runnable[Any, Any], count: Callable[[], object]) -> None:
        self._runnable, self._count = runnable, count

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        try:
            return self._runnable.invoke(input, config, **kwargs)
        finally:
            self._count()

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        try:
            return await self._runnable.ainvoke(input, config, **kwargs)
        finally:
            self._count()


@contextmanager
def counted(runnable: Runnable[Any, Any], total: int) -> Iterator[Runnable[Any, Any]]:
    """Yield the runnable with its answers and errors counted on standard error while the body runs.

    Args:
        runnable: The runnable.
        total: The total number of answers.

    Raises:
        ConfigurationError: Nothing is installed that draws a bar.
    """
    draw, lock = _drawer(), threading.Lock()
    with draw(total) as advance:

        def count() -> None:
            with lock:  # the bars' own counting is not safe for threads
                advance()

        yield _Counted(runnable, count)


def _drawer() -> Callable[[int], AbstractContextManager[Callable[[], object]]]:
    if find_spec("tqdm"):
        return _tqdm_bar
    if find_spec("rich"):
        return _rich_bar
    raise ConfigurationError("show_progress needs tqdm or rich: pip install tqdm")


@contextmanager
def _tqdm_bar(total: int) -> Iterator[Callable[[], object]]:
    from tqdm.auto import tqdm  # in notebooks a widget

    with tqdm(total=total) as bar:
        yield bar.update


@contextmanager
def _rich_bar(total: int) -> Iterator[Callable[[], object]]:
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress

    with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.advance(task)

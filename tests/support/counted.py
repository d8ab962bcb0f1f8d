"""How often the package's functions are called."""

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any

import langchain_autotools

PACKAGE = str(Path(langchain_autotools.__file__).parent)


@contextmanager
def counting(calls: Counter[str], *, new_threads: bool = False, package: str = PACKAGE, builtins: bool = False) -> Iterator[None]:
    """Count the calls of a package's functions, by place and name, in this thread, and in those that are started meanwhile.

    A generator counts each time it goes on, as does a comprehension where Python makes a frame for it (before 3.12).

    Args:
        calls: Takes them.
        new_threads: Whether threads that are started meanwhile count too.
        package: The folder of the package; "" for all functions that are written in Python.
        builtins: Whether the built-in functions that this package's own functions call count too.
    """
    names: dict[CodeType, str | None] = {}

    def profile(frame: Any, event: str, given: Any) -> None:
        code = frame.f_code
        if builtins and event == "c_call" and code.co_filename.startswith(PACKAGE):
            calls[f"{given.__qualname__} in {code.co_filename.removeprefix(PACKAGE)}:{code.co_qualname}"] += 1
        if event != "call":
            return
        if code not in names:
            path = code.co_filename
            names[code] = f"{path.removeprefix(package)}:{code.co_qualname}" if path.startswith(package) else None
        name = names[code]
        if name is not None:
            calls[name] += 1

    before = sys.getprofile()
    if new_threads:
        threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(before)
        if new_threads:
            threading.setprofile(None)  # type: ignore[arg-type]

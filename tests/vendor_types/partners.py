"""LangChain's partner packages, as the machine talks with them: one request, its tools declared."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tests.vendor_types.reading import RUNS, Told, look_up, told
from tests.vendor_types.rows import Row

WAYS = ("invoke", "stream")


def is_installed(row: Row) -> bool:
    """Whether the partner package of a row is installed."""
    return find_spec(row.partner[0]) is not None


class Theirs:
    """The partner package's model of a row, in one way."""

    def __init__(self, row: Row, way: str, url: str) -> None:
        module, name = row.partner
        model = getattr(import_module(module), name)(model="any", base_url=url, **row.partner_arguments)
        self._model: Any = model.bind_tools([look_up])
        self._run = RUNS[way]

    async def talk(self) -> Told:
        """One reply."""
        try:
            reply = await self._run(self._model, "Hello")
        except Exception as error:  # what the vendor says of a failure is in it
            return told([], None, error)
        return told([reply], reply)

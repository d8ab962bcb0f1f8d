"""Copies and pickles of an executor, with tools pickled by reference to their modules."""

from copy import deepcopy
from typing import Any, Self

from ..pickling import check_portable
from .call import PreparedTools
from .tools import dump_tools, restore_tools, tools_by_name
from .workers.background import home_of_caller

_REMADE = frozenset({"tools", "prepared", "_home"})


class Portable:
    """Base class of objects that can be copied and, if their parts can, pickled."""

    def __copy__(self) -> Self:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = object.__new__(type(self))
        made.__setstate__(deepcopy(self._parts(), memo))
        return made

    def _parts(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _REMADE}

    def __getstate__(self) -> dict[str, Any]:
        parts = self._parts()
        check_portable("ToolExecutor", {name.strip("_"): value for name, value in parts.items() if name != "_given"})
        return {**parts, "_given": dump_tools("ToolExecutor", parts["_given"])}

    def __setstate__(self, state: dict[str, Any]) -> None:
        given = restore_tools(state["_given"])
        tools = tools_by_name(given)
        handlers = state["handlers"]
        prepared = PreparedTools(tools if handlers is None else handlers.beside(tools))
        self.__dict__.update(state, _given=given, tools=tools, prepared=prepared, _home=home_of_caller())

"""The tools of an MCP server, in the form in which a model is offered them.

A server may list what it likes. What every vendor takes stays as it is, byte for byte. Another name becomes an alias, by a rule that
depends on neither the rest of the list nor the vendor, and another schema is adapted (`schemas`). What cannot be is left out, with a
WARNING.
"""

import json
import logging
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any

from langchain_core.tools import BaseTool

from ..errors import ConfigurationError
from ..executor import ToolContext
from ..executor.signatures import CheckedSchema
from ..executor.tools import SourceTool
from ..strict_json import mend_surrogates
from .questions import Round
from .schemas import OutputCheck, UnusableSchemaError, adapted, alias_of

_logger = logging.getLogger("langchain_autotools")

Selection = Collection[str] | Callable[[Mapping[str, Any]], bool]
"""Some of a server's tools: their names, or a function that is called with a tool as the server lists it and returns True or False."""

CallTool = Callable[[str, Mapping[str, Any], ToolContext], Awaitable[tuple[Any, Any]]]
"""A function that calls a tool by the server's name of it."""

Bound = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""A function that returns what an approval of a tool's calls is bound to, as fields of a `SourceTool`."""

_ANNOTATIONS = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_LEGAL = re.compile(r"(?!(?:null|None)$)[A-Za-z_][A-Za-z0-9_-]{0,63}")  # some servers write null for no name at all


def offered_name(prefix: str, name: str) -> str:
    """Return the name under which a model is offered a tool: the server's, or an alias where some vendor does not take that.

    Args:
        prefix: What goes before the names of the server's tools.
        name: The server's name of it.
    """
    full = f"{prefix}{name}"
    return full if _LEGAL.fullmatch(full) else alias_of(full)


@dataclass(frozen=True)
class Offer:
    """The rule for which tools of a server are offered, under which names.

    Attributes:
        prefix: Is put before their names.
        only: Those that are offered; None for all.
        without: Those of them that are not; None for none.
    """

    prefix: str = ""
    only: Selection | None = None
    without: Selection | None = None

    @classmethod
    def read(cls, prefix: Any, only: Any, without: Any) -> "Offer":
        """Return the rule as a caller gives it.

        Raises:
            ConfigurationError: It cannot work.
        """
        if not isinstance(prefix, str):
            raise ConfigurationError(f"prefix must be a text, not {prefix!r}")
        return cls(prefix, _checked_selection("only", only), _checked_selection("without", without))

    @property
    def functions(self) -> dict[str, Any]:
        """The functions among its parts, by the names of the arguments."""
        return {name: one for name, one in (("only", self.only), ("without", self.without)) if callable(one)}

    def tools(
        self, definitions: Sequence[Any], call: CallTool, server: str, bound: Bound = lambda _: {}, *, first: bool = True
    ) -> list[BaseTool]:
        """Return the tools that are offered.

        Args:
            definitions: What the server lists.
            call: Calls a tool.
            server: The server's name in logs and errors.
            bound: Returns further fields of a tool, by its definition.
            first: Whether this is the first list of the server, so that a name that it does not have is an error.

        Raises:
            ConfigurationError: The rule names a tool that the server does not list, or a function of it says neither True nor False.
        """
        listed = list(_with_names(definitions, server))
        chosen = self._chosen(listed, server, first=first)
        twice = {name for name, number in Counter(one["name"] for one in listed).items() if number > 1}  # a call could mean either
        counted = Counter(self._name(one) for one in chosen)
        equal = [one["name"] for one in chosen if one["name"] in twice or counted[self._name(one)] > 1]
        if equal:
            _logger.warning("tools of %s are left out, because they have one name: %s", server, ", ".join(map(repr, equal)))
        made = (self._made(one, call, server, bound) for one in chosen if one["name"] not in equal)
        return [tool for tool in made if tool is not None]

    def _name(self, definition: Mapping[str, Any]) -> str:
        return offered_name(self.prefix, definition["name"])

    def _names(self, definition: Mapping[str, Any]) -> set[str]:
        """Return the names by which a rule may mean a tool."""
        return {self._name(definition), definition["name"], f"{self.prefix}{definition['name']}"}

    def _chosen(self, listed: Sequence[Mapping[str, Any]], server: str, *, first: bool) -> list[Mapping[str, Any]]:
        known = {name for one in listed for name in self._names(one)}
        for argument, rule in (("only", self.only), ("without", self.without)):
            unknown = [] if rule is None or callable(rule) else sorted({*rule} - known)
            if unknown:
                text = f"{argument} names tools that {server} does not list: {', '.join(map(repr, unknown))}"
                if first:
                    raise ConfigurationError(f"{text}. It lists: {', '.join(repr(one['name']) for one in listed) or 'none'}")
                _logger.warning("%s", text)
        chosen = [one for one in listed if self.only is None or self._selects("only", self.only, one)]
        return [one for one in chosen if self.without is None or not self._selects("without", self.without, one)]

    def _selects(self, argument: str, rule: Selection, definition: Mapping[str, Any]) -> bool:
        if not callable(rule):
            return not self._names(definition).isdisjoint(rule)
        answer = rule(definition)
        if not isinstance(answer, bool):
            raise ConfigurationError(f"{argument} must say True or False of a tool, not {answer!r}")
        return answer

    def _made(self, definition: Mapping[str, Any], call: CallTool, server: str, bound: Bound) -> BaseTool | None:
        """Return a tool; None where it is left out."""
        try:
            return self._tool(definition, call, server, bound)
        except UnusableSchemaError as error:
            _logger.warning("the tool %r of %s is left out: %s", definition["name"], server, error)
            return None

    def _tool(self, definition: Mapping[str, Any], call: CallTool, server: str, bound: Bound) -> BaseTool:
        own, name = definition["name"], self._name(definition)
        form = adapted(definition.get("inputSchema"), f"the schema of the tool {own!r} of {server}")
        notes = [
            *([f"The server calls this tool {json.dumps(own, ensure_ascii=False)}."] if name != f"{self.prefix}{own}" else ()),
            *form.notes,
        ]

        output = OutputCheck(definition.get("outputSchema"), f"the output schema of the tool {own!r} of {server}")

        async def call_tool(context_of_call: ToolContext, /, **arguments: Any) -> tuple[Any, Any]:
            given = {form.keys.get(argument, argument): value for argument, value in arguments.items()}  # by the server's own names
            content, artifact = await call(own, given, context_of_call)
            output.check(artifact)
            return content, artifact

        annotations = definition.get("annotations")
        metadata = {
            **({"annotations": annotations} if annotations and isinstance(annotations, Mapping) else {}),
            **({"own_name": own} if name != own else {}),
        }
        return SourceTool(
            name=name,
            description=_described(definition, notes),
            args_schema=CheckedSchema({"properties": {}, **form.declared}, form.check.problem),
            coroutine=call_tool,
            response_format="content_and_artifact",
            other_names=tuple(sorted(self._names(definition) - {name})),
            check_continued=Round.continued,
            metadata=metadata or None,
            **bound(definition),
        )


def definition_of(tool: Mapping[str, Any], *, bind_description: bool) -> dict[str, Any]:
    """Return what an approval of a tool's calls is bound to: what every version of the SDK keeps of what the server lists, as plain JSON.

    Args:
        tool: The tool, as the server lists it.
        bind_description: Whether the description counts.
    """
    claims = tool.get("annotations")
    annotations = {name: claims[name] for name in _ANNOTATIONS if isinstance(claims, Mapping) and claims.get(name) is not None}
    told = {"description": tool.get("description") or tool.get("title") or ""}
    bound = {"name": tool["name"], "inputSchema": tool.get("inputSchema"), "annotations": annotations}
    whole = {**bound, **(told if bind_description else {"unbound": told})}
    made: dict[str, Any] = json.loads(mend_surrogates(json.dumps(whole, ensure_ascii=False)), parse_constant=str)  # NaN is no JSON
    return made


def _checked_selection(argument: str, rule: Any) -> Selection | None:
    """Return names of tools, or a function; raise if it is neither.

    Raises:
        ConfigurationError: It is neither.
    """
    if callable(rule):
        if iscoroutinefunction(rule):
            raise ConfigurationError(f"{argument} must say True or False at once: an asynchronous function cannot")
        return rule  # type: ignore[no-any-return]
    names = rule if isinstance(rule, Collection) and not isinstance(rule, str | Mapping) else None
    if rule is None or (names is not None and all(isinstance(name, str) for name in names)):
        return None if names is None else tuple(names)
    raise ConfigurationError(f"{argument} must be a list of names of tools, or a function of a tool as the server lists it, not {rule!r}")


def _with_names(definitions: Iterable[Any], server: str) -> Iterator[Mapping[str, Any]]:
    """Yield those of the definitions that have a name: the first of each name, and one that differs from it."""
    first: dict[str, Any] = {}
    different: set[str] = set()
    for definition in definitions:
        name = definition.get("name") if isinstance(definition, Mapping) else None
        if not isinstance(name, str) or not name:
            _logger.warning("a tool of %s is left out: it has no name", server)
        elif first.setdefault(name, definition) is definition:
            yield definition
        elif name not in different and not _is_same(first[name], definition):
            different.add(name)
            yield definition


def _is_same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except RecursionError:
        return False


def _described(definition: Mapping[str, Any], notes: Sequence[str]) -> str:
    """Return the description of a tool, with what it does not say itself."""
    texts = (definition.get("description"), definition.get("title"))
    own = next((text for text in texts if isinstance(text, str) and text), "")
    return mend_surrogates("\n\n".join(filter(None, (own, " ".join(notes)))))

"""What an executor makes of a model's calls before any of them runs: which tool or handler each means, and what was decided about it."""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from langchain_core.tools import BaseTool

from ..errors import ConfigurationError
from ..messages.calls import ToolCallRecord
from .approval.approvals import Approvals, approved_edit
from .approval.identity import identified
from .approval.pending import Decision, PendingCall, decided
from .call import PreparedTools
from .names import find_name
from .plan import Calls, read_calls
from .portable import Portable
from .resolution import Meaning, Only, checked_only

if TYPE_CHECKING:
    from .handlers import Handlers


class ReadsCalls(Portable):
    """An object that has tools and handlers, and finds those that calls mean."""

    tools: dict[str, BaseTool]
    prepared: PreparedTools
    handlers: "Handlers | None"
    approvals: Approvals | None
    parallel: bool | None

    def _with_handlers(self, handlers: Any, client_tools: Mapping[str, str]) -> Approvals:
        """Take handlers beside the tools, and return the rule for their calls."""
        from .handlers import Handlers  # here, because it costs every other program its import

        added = Handlers.read(handlers, client_tools)
        self.handlers = made = added if self.handlers is None else self.handlers.over(added)
        taken = sorted(made.tools.keys() & self.tools.keys())
        if taken:
            raise ConfigurationError(f"no tool may have the name of a handler: {', '.join(map(repr, taken))}")
        self.prepared = PreparedTools(made.beside(self.tools))
        return Approvals(of_handlers=made.need_approval)

    def find(self, name: str) -> BaseTool | None:
        """Return the tool that a model means by `name`; None if there is none, or if the name is ambiguous.

        An exact name always wins. Else what some models and servers add is ignored: white space, special tokens, a prefix
        such as `functions.`, a number such as `:0`, and letter case, `-` and `_` if that leaves one tool only.
        """
        key = find_name(name, self.tools)
        return None if key is None else self.tools[key]

    def handled(self, calls: Iterable[ToolCallRecord]) -> list[ToolCallRecord]:
        """Return the calls of a reply, those for which there is a handler under its name.

        What a history ends in is not a reply: a client may have written it.
        """
        handlers = self.handlers
        return list(calls) if handlers is None else [call if call.args is None else handlers.taken(call, self.tools) for call in calls]

    def meant(
        self, calls: Iterable[ToolCallRecord], *, caller_tools: Collection[str] = (), only: Only | None = None
    ) -> list[ToolCallRecord]:
        """Return the calls under their tools' own names, with the calls that they bundle.

        Args:
            calls: The calls as the model wrote them.
            caller_tools: Names of tools that this executor leaves to the caller, also where it has one of that name.
            only: Rule for calls that may be executed, as for `stream`. Other calls have no `args`, and a reason.
        """
        meaning = Meaning(self.tools, caller_tools, checked_only(only), self.prepared.arguments_of)
        return [call if call.args is None else meaning.of(call) for call in calls]

    def pending_calls(self, calls: Calls) -> list[PendingCall]:
        """Return the pending calls, including those queued behind them, in call order.

        Args:
            calls: The AI message, or its calls.
        """
        read = read_calls(calls)
        known = identified(calls, read, [], read_calls)
        meant = self.meant(self.handled(read))
        return (self.approvals or Approvals()).pending(meant, known, self.prepared.arguments_of, in_order=self.parallel is False)

    def decided(self, call: ToolCallRecord, decision: Decision, *, only: Only | None = None) -> ToolCallRecord:
        """Return the call with its decision applied: to run, or (with `args` None) to be answered.

        Raises:
            ConfigurationError: It is to run with arguments that its tool does not take.
        """
        made = decided(call, decision)
        return approved_edit(self.meant([made], only=only)[0], self.prepared.arguments_of) if decision.action == "edit" else made

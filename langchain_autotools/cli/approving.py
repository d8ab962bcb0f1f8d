"""Approval of calls by a human at the terminal."""

import json

from langchain_autotools.errors import ConfigurationError
from langchain_autotools.executor import Decision, PendingCall, ToolExecutor
from langchain_autotools.executor.approval.elicitation import ELICITATION
from langchain_autotools.executor.approval.pending import decided, full_name
from langchain_autotools.messages.calls import ToolCallRecord
from langchain_autotools.strict_json import read_object

from .display import Display, one_line
from .session import read_line

_UNANSWERED = "The user was asked whether this call may run, and gave no answer. It did not run."


class Approver:
    """Asks about one call after another on standard input; a value for `approve=`.

    Args:
        executor: Knows the tools, and what arguments they take.
        display: Shows the calls.
    """

    def __init__(self, executor: ToolExecutor, display: Display) -> None:
        self._executor = executor
        self._display = display

    def __call__(self, call: PendingCall) -> Decision:
        """Return the human's decision about the call: y, n, e and other arguments, or a reason. Without an answer it does not run."""
        shown = ToolCallRecord(call.id, full_name(call), json.dumps(call.args), call.args)
        while True:
            self._display.call_waits(shown)
            try:
                decision = self._answered(call, read_line(self._display.question).strip())
                if decision is not None:
                    self._tell(decided(shown, decision) if call.path else self._executor.decided(shown, decision))
                    return decision
            except (EOFError, KeyboardInterrupt):
                self._display.note("\n(no answer: the call does not run)")
                return call.reject(_UNANSWERED)
            except ConfigurationError as error:
                self._display.note(one_line(error))

    def _tell(self, call: ToolCallRecord) -> None:
        """Show the call that runs now; a rejected one has no arguments."""
        if call.args is not None:
            self._display.call_allowed(call)

    def _answered(self, call: PendingCall, answer: str) -> Decision | None:
        """Return the decision for an answer; None if the answer is invalid."""
        if answer.lower() in ("y", "yes"):
            return call.approve()
        if answer.lower() in ("n", "no"):
            return call.reject()
        if answer.lower() in ("e", "edit"):
            args = read_object(read_line(self._display.edit_question))
            if args is None:
                raise ConfigurationError('the arguments are a JSON object on one line, such as {"city": "Paris"}')
            return call.respond(args) if call.kind == ELICITATION else call.edit(args)
        return call.reject(answer) if answer else None

"""The stop reasons of runs."""

from typing import Literal

StopReason = Literal[
    "complete",
    "calls_pending",
    "return_direct",
    "max_turns",
    "max_tool_calls",
    "token_budget",
    "max_cost",
    "context_window",
    "deadline",
    "no_progress",
    "refused",
    "length",
    "incomplete",
    "cancelled",
    "stop_when",
]
"""The reason why a run ended.

The first three are natural ends; `refused` is the model's or the vendor's refusal; `length` and `incomplete` mean that the last reply was
cut off, at its token limit or by anything else; `cancelled` is the caller's cancellation, `stop_when` the caller's condition; the others
are limits."""

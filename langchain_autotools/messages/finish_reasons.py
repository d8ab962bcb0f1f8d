"""Groups of finish reasons, in every vendor's terms."""

from .stop_reasons import StopReason

REFUSALS = frozenset(
    {
        *("refusal", "refused", "content_filter", "content_filtered", "guardrail_intervened", "prompt_blocked", "model_armor"),
        *("safety", "recitation", "blocklist", "prohibited_content", "spii"),
        *("image_safety", "image_prohibited_content", "image_recitation"),
    }
)
"""Finish reasons, in lower case, of a refusal by the model or its vendor (wire quirks T-04, T-05)."""


AT_TOKEN_LIMIT = frozenset({"length", "max_tokens", "model_length", "max_output_tokens", "model_context_window_exceeded"})
"""Finish reasons, in lower case, of a reply cut off at a token limit (wire quirks T-03, C-15)."""


BROKEN_OFF = frozenset({"incomplete", "error", "failed", "aborted", "abort", "insufficient_system_resource"})
"""Finish reasons, in lower case, of a reply that its server could not complete (wire quirks T-03, E-08)."""


BLOCKING = frozenset(
    {
        *AT_TOKEN_LIMIT,
        *REFUSALS,
        *("error", "incomplete", "failed", "cancelled", "canceled", "aborted", "abort", "continuation", "other", "language"),
        *("malformed_function_call", "unexpected_tool_call", "too_many_tool_calls", "insufficient_system_resource"),
        *("malformed_response", "missing_thought_signature", "escalation", "pup_limited_disabled", "image_other", "no_image"),
        *("tool_use_failed", "deadline"),
    }
)
"""Finish reasons, in lower case, after which no call of the turn may run (wire quirks T-03, T-04, E-08)."""


def stop_reason_of(blocked: str | None) -> StopReason:
    """Return the stop reason of a run whose last reply has no calls.

    Args:
        blocked: The reply's finish reason, where it says that the reply did not end normally.
    """
    reason = (blocked or "").lower()
    if not reason:
        return "complete"
    if reason in REFUSALS:
        return "refused"
    if reason == "deadline":
        return "deadline"
    return "length" if reason in AT_TOKEN_LIMIT else "incomplete"

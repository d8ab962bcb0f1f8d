"""What finish reasons mean, in every vendor's words."""

__all__ = ["AT_TOKEN_LIMIT", "REFUSALS"]


REFUSALS = frozenset(
    {
        *("refusal", "refused", "content_filter", "content_filtered", "guardrail_intervened", "prompt_blocked", "model_armor"),
        *("safety", "recitation", "blocklist", "prohibited_content", "spii"),
        *("image_safety", "image_prohibited_content", "image_recitation"),
    }
)
"""Finish reasons, in lower case, by which a model or its vendor refuses to go on (wire quirks T-04, T-05)."""


AT_TOKEN_LIMIT = frozenset({"length", "max_tokens", "model_length", "max_output_tokens", "model_context_window_exceeded"})
"""Finish reasons, in lower case, of a reply that a limit of tokens cut off (wire quirks T-03, C-15)."""

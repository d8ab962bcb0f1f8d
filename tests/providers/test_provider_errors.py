"""`ProviderError`: one class above the errors of all vendors."""

import importlib

import pytest

from langchain_autotools import ChatOpenAI, ProviderError
from tests.support.openai_server import OpenAIServer
from tests.support.script import Failure


@pytest.mark.parametrize("name", ["OpenAIRateLimitError", "AnthropicOverloadedError", "GoogleStatusError", "OllamaConnectionError"])
def test_every_vendors_errors_are_provider_errors(name: str) -> None:
    """One `except` gets them all."""
    vendor = next(vendor for vendor in ("openai", "anthropic", "google", "ollama") if name.lower().startswith(vendor))
    errors = importlib.import_module(f"langchain_autotools.providers.{vendor}.errors")
    assert issubclass(getattr(errors, name), ProviderError)


def test_it_says_whether_and_when_to_try_again() -> None:
    """`is_retryable` and `retry_after`, the seconds that the server asked to wait, are attributes that type checkers know."""
    with OpenAIServer([Failure(429, "Slow down.", "rate_limit", headers={"Retry-After": "7"})]) as server:
        with pytest.raises(ProviderError) as raised:
            ChatOpenAI(model="any", base_url=server.url, api_key="key", max_retries=0).invoke("Hi")
    assert (raised.value.is_retryable, raised.value.retry_after) == (True, 7.0)

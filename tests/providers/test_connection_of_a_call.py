"""How a server is reached is the constructor's, under every class's name for it; headers among `model_kwargs` are as secret as others."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from langchain_core.load import dumps

from langchain_autotools import ChatAnthropic, ChatGoogleGenerativeAI, ChatOllama, ChatOpenAI, ConfigurationError

SECRET = "secret-5f2c61d0a9"
CLASSES = [ChatOpenAI, ChatAnthropic, ChatGoogleGenerativeAI, ChatOllama]
NAMES = ["headers", "auth", "credentials", "azure_ad_token", "openai_api_base", "openai_organization", "anthropic_api_url", "client_kwargs"]
NAMES += ["token", "project", "location", "transport"]


def made(kind: Any, **fields: Any) -> Any:
    """A model that reaches nobody."""
    return kind(model="any", base_url="http://127.0.0.1:9", api_key="key", **fields)


@pytest.mark.parametrize("kind", CLASSES)
def test_a_call_takes_no_class_name_for_a_connection(kind: Any) -> None:
    """Another vendor's name for a key, an address or headers is refused before it is in a request, and its value is not said."""
    for name in NAMES:
        given = {name: {"Authorization": SECRET} if name in ("headers", "client_kwargs") else SECRET}
        with pytest.raises(ConfigurationError, match=f"{name} is for the constructor") as caught:
            made(kind).invoke("Hi", **given)
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize("kind", CLASSES)
def test_headers_among_the_other_keywords_are_hidden(kind: Any) -> None:
    """All that are not known to be harmless, in repr, JSON and traces; no pickle is made without them. The others are shown and travel."""
    headers = {"X-Key": SECRET, "X-Team": SECRET, "X-Title": "blue"}
    model = made(kind, model_kwargs={"extra_headers": headers, "extra_query": {"key": SECRET}})
    shown = [repr(model), dumps(model), model.model_dump_json(), str(model._get_invocation_params())]
    assert [text for text in shown if SECRET in text] == []
    assert all("blue" in text for text in (repr(model), model.model_dump_json()))
    named = r"\['X-Key'\], model_kwargs\['extra_headers'\]\['X-Team'\], model_kwargs\['extra_query'\]\['key'\] cannot"
    with pytest.raises(pickle.PicklingError, match=named):
        pickle.dumps(model)
    plain = made(kind, model_kwargs={"extra_headers": {"X-Title": "blue"}})
    assert pickle.loads(pickle.dumps(plain)).model_kwargs["extra_headers"] == {"X-Title": "blue"}

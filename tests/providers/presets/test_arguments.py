"""What presets take and send: names of the partner packages, environments, parameters, secrets, and what LangChain asks."""

import pickle
from typing import Any, ClassVar

import pytest
from langchain_core.messages import HumanMessage
from pydantic import BaseModel, SecretStr

from langchain_autotools import (
    ChatCohere,
    ChatDeepSeek,
    ChatFireworks,
    ChatGroq,
    ChatMistralAI,
    ChatOpenRouter,
    ChatTogether,
    ChatXAI,
    ConfigurationError,
)
from langchain_autotools.providers.openai import Dialect, Environment, Preset, PresetChatModel
from tests.providers.presets.conftest import Start
from tests.support.script import Turn
from tests.support.vendors import Vendor

HELLO = [HumanMessage("Hello.")]

NAMES: list[tuple[type[Any], dict[str, Any]]] = [
    (ChatCohere, {"cohere_api_key": "k", "timeout_seconds": 3.0, "base_url": "http://a/v1"}),
    (ChatMistralAI, {"mistral_api_key": "k", "endpoint": "http://a/v1", "random_seed": 4, "safe_mode": True}),
    (ChatGroq, {"groq_api_key": "k", "groq_api_base": "http://a/v1", "groq_proxy": "http://b", "reasoning_format": "parsed"}),
    (
        ChatOpenRouter,
        {"openrouter_api_key": "k", "openrouter_api_base": "http://a/v1", "reasoning": {"effort": "low"}, "route": "fallback"},
    ),
    (ChatTogether, {"together_api_key": "k", "together_api_base": "http://a/v1"}),
    (ChatFireworks, {"fireworks_api_key": "k", "fireworks_api_base": "http://a/v1", "service_tier": "priority"}),
    (ChatDeepSeek, {"api_key": "k", "api_base": "http://a/v1"}),
    (ChatXAI, {"xai_api_key": "k", "xai_api_base": "http://a/v1"}),
]


@pytest.mark.parametrize(("cls", "given"), NAMES, ids=[cls.__name__ for cls, _ in NAMES])
def test_partner_names_are_taken(cls: type[Any], given: dict[str, Any]) -> None:
    """Every constructor name of the partner package works, and reads back under that name."""
    model = cls(model="any", **given)
    for name, value in given.items():
        read = getattr(model, name, None)
        assert (read.get_secret_value() if isinstance(read, SecretStr) else read) == value or name in ("base_url", "api_key")
    assert model.openai_api_base == "http://a/v1"


def test_unknown_names_are_errors(vendor: Vendor) -> None:
    """An unknown constructor argument is an error that names the nearest."""
    with pytest.raises(ConfigurationError, match=r"'temprature': did you mean 'temperature'"):
        vendor.chat_model(model="any", temprature=1)


REFUSED = [
    (ChatCohere, "preamble"), (ChatMistralAI, "max_concurrent_requests"), (ChatMistralAI, "logit_bias"), (ChatGroq, "logprobs"),
    (ChatXAI, "search_parameters"), (ChatDeepSeek, "store"), (ChatTogether, "use_responses_api"), (ChatFireworks, "organization"),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "name"), REFUSED, ids=[f"{cls.__name__}-{name}" for cls, name in REFUSED])
def test_what_the_vendor_cannot_do_is_refused(cls: type[Any], name: str) -> None:
    """Arguments that a vendor cannot honour are refused with what to do instead; None and False ask for nothing."""
    with pytest.raises(ConfigurationError, match=rf"{cls.__name__} has no argument '{name}': \w+"):
        cls(model="any", **{name: {"some": "value"}})
    cls(model="any", **{name: None})


def test_a_refused_parameter_of_a_call(start: Start) -> None:
    """The same parameters as keywords of a call are refused before anything is sent, unless `extra_body` insists."""
    model, server = start("groq", [Turn("Hi.")])
    with pytest.raises(ConfigurationError, match="cannot send 'logit_bias': Groq refuses it"):
        model.invoke(HELLO, logit_bias={1: 1})
    assert server.exchanges == []
    with pytest.raises(Exception, match="logit_bias"):
        model.invoke(HELLO, extra_body={"logit_bias": {"1": 1}})
    assert len(server.exchanges) == 1


def test_nothing_of_openais_goes_elsewhere(start: Start, vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Key, organization, project, address and proxy of OpenAI's environment are neither read nor sent; a missing key says which to set."""
    for name, value in {"API_KEY": "sk-openai", "ORG_ID": "org", "PROJECT_ID": "proj", "BASE_URL": "http://c", "PROXY": "http://p"}.items():
        monkeypatch.setenv(f"OPENAI_{name}", value)
    monkeypatch.delenv(vendor.key, raising=False)
    model, server = start(vendor, [Turn("Hi.")])
    model.invoke(HELLO)
    headers = server.exchanges[0].headers
    assert headers["authorization"] == "Bearer key"
    assert not {"openai-organization", "openai-project"} & headers.keys()
    bare = vendor.chat_model(model="any")
    assert bare.openai_api_base == vendor.chat_model.preset.base_url
    with pytest.raises(ConfigurationError, match=f"no key: give api_key, or set {vendor.key}"):
        bare.invoke(HELLO)


async def test_a_missing_key_asynchronously(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    """The asynchronous client says the same."""
    monkeypatch.delenv(vendor.key, raising=False)
    with pytest.raises(ConfigurationError, match=vendor.key):
        await vendor.chat_model(model="any").ainvoke(HELLO)


def test_the_environment_of_the_vendor(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Key and address come from the vendor's variables; an address without a path gets the vendor's."""
    environment = vendor.chat_model.preset.environment
    monkeypatch.setenv(vendor.key, "sk-secret-of-the-vendor")
    path = "/" + vendor.chat_model.preset.base_url.split("/", 3)[3]
    for variable in environment.base_url[:1]:
        monkeypatch.setenv(variable, "http://127.0.0.1:9/")
        assert vendor.chat_model(model="any").openai_api_base == f"http://127.0.0.1:9{path}"
        monkeypatch.setenv(variable, "http://127.0.0.1:9/own/v2")
        assert vendor.chat_model(model="any").openai_api_base == "http://127.0.0.1:9/own/v2"
    model = vendor.chat_model(model="any")
    assert model.openai_api_key.get_secret_value() == "sk-secret-of-the-vendor"
    assert "sk-secret" not in f"{model!r} {model} {model._identifying_params} {model.lc_secrets}"
    assert b"sk-secret" not in pickle.dumps(model)
    assert pickle.loads(pickle.dumps(model)).openai_api_key.get_secret_value() == "sk-secret-of-the-vendor"
    assert model.lc_secrets == {"openai_api_key": vendor.key}


def test_limits_and_seeds_have_the_vendors_names(start: Start, vendor: Vendor) -> None:
    """`max_tokens` and `seed` are accepted under the name that this vendor knows; traces say the limit all the same."""
    model, server = start(vendor, [Turn("Hi.")], max_tokens=50, seed=3, temperature=0.5)
    model.invoke(HELLO, stop=["END"])
    assert [rejection.message for rejection in server.rejections] == []
    said = model._get_ls_params()
    provider = "mistral" if vendor.name == "mistralai" else vendor.name
    assert (said["ls_provider"], said["ls_max_tokens"], said["ls_temperature"]) == (provider, 50, 0.5)


def test_known_models_have_a_profile() -> None:
    """What is known of a model of the vendor's own, and nothing of any other."""
    assert ChatMistralAI(model="mistral-large-latest").profile["max_input_tokens"] == 262_144
    assert ChatDeepSeek(model="deepseek-v4-pro").profile["reasoning_output"] is True
    assert not ChatGroq(model="gpt-4o").profile


def test_mistral_tells_log_probabilities_and_takes_a_service_tier(start: Start) -> None:
    """Its API has both under the names of chat completions (docs.mistral.ai/api)."""
    model, server = start("mistralai", [Turn("Hi."), Turn("Hi.")], logprobs=True, top_logprobs=2, service_tier="default")
    model.invoke(HELLO)
    list(model.stream(HELLO))
    said = [{key: request[key] for key in ("logprobs", "top_logprobs", "service_tier")} for request in server.requests]
    assert said == [{"logprobs": True, "top_logprobs": 2, "service_tier": "default"}] * 2


def test_stop_sequences_of_thinking_groks(start: Start) -> None:
    """A model that refuses stop sequences is not sent any."""
    model, server = start("xai", [Turn("Hi."), Turn("Hi.")], model="grok-4")
    model.invoke(HELLO, stop=["END"])
    model.invoke(HELLO, stop=["END"], model="some-grok")
    assert ["stop" in request for request in server.requests] == [False, True]


def tell(joke: str) -> str:
    """Tell a joke."""
    return joke


class Joke(BaseModel):
    """A joke."""

    setup: str
    punchline: str


def test_structured_output_takes_the_vendors_best_method() -> None:
    """The default method is the partner package's; one that the vendor lacks is replaced by the tool, or refused."""
    default = {cls.__name__: cls(model="any", api_key="k").preset.methods[0] for cls, _ in NAMES}
    assert default == {
        **dict.fromkeys(("ChatCohere", "ChatTogether"), "json_schema"),
        **dict.fromkeys(("ChatMistralAI", "ChatGroq", "ChatOpenRouter", "ChatFireworks", "ChatDeepSeek", "ChatXAI"), "function_calling"),
    }
    bound = ChatDeepSeek(model="any", api_key="k").with_structured_output(Joke, method="json_schema")
    assert "Joke" in str(bound.first.kwargs["tools"])


def test_groq_gives_json_without_tools_only(start: Start) -> None:
    """JSON output is asked for whole; beside tools it is refused before it is asked for."""
    model, server = start("groq", [Turn('{"setup": "a", "punchline": "b"}')] * 2)
    for chain in (model.with_structured_output(Joke, method="json_schema"), model.with_structured_output(Joke, method="json_mode")):
        assert [*chain.stream("A joke as JSON.")][-1] == Joke(setup="a", punchline="b")
    assert [rejection.message for rejection in server.rejections] == []
    model, _ = start("groq", [], tools=[tell])
    with pytest.raises(ConfigurationError, match="method='function_calling'"):
        model.with_structured_output(Joke, method="json_schema").invoke("A joke as JSON.")


def test_openrouter_says_who_asks(start: Start) -> None:
    """Attribution goes as headers, preferences in the body."""
    about = {"app_url": "http://me", "app_title": "Me", "app_categories": ["cli-agent"]}
    model, server = start("openrouter", [Turn("Hi.")], openrouter_provider={"order": ["x"]}, session_id="s", **about)
    model.invoke(HELLO)
    headers, request = server.exchanges[0].headers, server.requests[0]
    assert (headers["http-referer"], headers["x-title"], headers["x-openrouter-categories"]) == ("http://me", "Me", "cli-agent")
    assert (request["provider"], request["session_id"]) == ({"order": ["x"]}, "s")


class ChatAcme(PresetChatModel):
    """A user's own vendor, with a field and a rename of its own."""

    effort: str | None = None

    preset: ClassVar[Preset] = Preset(
        dialect=Dialect(provider="acme"),
        base_url="https://acme.example/v1",
        environment=Environment(key=("ACME_API_KEY",)),
        fields={"effort": "effort_level"},
        renamed={"max_completion_tokens": "limit"},
    )


def test_a_users_own_preset() -> None:
    """A preset is data: its fields and names reach the request."""
    model = ChatAcme(model="any", api_key="k", effort="low", max_tokens=3)
    params = model._request_params(None, {}, stream=False)
    assert params == {"model": "any", "effort_level": "low", "limit": 3}
    assert model._llm_type == "acme-chat"

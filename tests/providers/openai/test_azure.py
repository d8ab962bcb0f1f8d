"""`AzureChatOpenAI` over real HTTP: paths, versions, keys, tokens, filters; with tools that run."""

import pickle
from typing import Any

import openai
import pytest
from langchain_core.exceptions import ModelAuthenticationError, ModelInvalidRequestError, ModelNotFoundError
from langchain_core.messages import HumanMessage

from langchain_autotools import AzureChatOpenAI, ConfigurationError, new_messages
from tests.support.azure_server import FILTERS, KEY, VERSION, AzureResponsesServer, AzureServer
from tests.support.script import Call, Reply, Turn
from tests.support.weather import get_temperature

QUESTION = [HumanMessage("How warm is it in Paris?")]


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine's environment."""
    for name in ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN", "AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def turns() -> list[Reply]:
    """A call and an answer."""
    return [Turn(calls=[Call("get_temperature", {"city": "Paris"})]), Turn("21 °C.")]


def azure(server: Any, **more: Any) -> AzureChatOpenAI:
    """A model on the server."""
    place = {"azure_endpoint": server.address, "azure_deployment": "mine", "api_version": VERSION}
    return AzureChatOpenAI(**{**place, "api_key": KEY, "max_retries": 0, **more})


def refused(server: Any) -> list[str]:
    """What the server refused."""
    return [rejection.message for rejection in server.rejections]


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
async def test_tools_run_on_a_deployment(way: str) -> None:
    """Requests go to the deployment's path with the version and the key; filter results are kept and disturb nothing."""
    with AzureServer(turns()) as server:
        model = azure(server, tools=[get_temperature], model_version="2024-11-20", model="gpt-4o")
        if way in ("invoke", "ainvoke"):
            new = new_messages(await model.ainvoke(QUESTION) if way == "ainvoke" else model.invoke(QUESTION))
        else:
            chunks = [chunk async for chunk in model.astream(QUESTION)] if way == "astream" else list(model.stream(QUESTION))
            new = [message for chunk in chunks for message in new_messages(chunk)]
        assert refused(server) == []
    assert [message.response_metadata.get("prompt_filter_results") for message in new] == [FILTERS, None, FILTERS]
    assert [message.text for message in new] == ["", "Paris: 21 °C", "21 °C."]
    assert new[-1].response_metadata["model_name"] == "gpt-4o-2024-11-20"
    assert new[-1].usage_metadata["input_tokens"] == 11


def test_a_deployment_named_like_the_model() -> None:
    """Without a deployment the model's name is taken for it."""
    with AzureServer([Turn("Hi.")], deployments=["gpt-5"]) as server:
        model = azure(server, azure_deployment=None, model="gpt-5")
        assert (model.invoke("Hello.").text, refused(server)) == ("Hi.", [])


def test_a_whole_base_url() -> None:
    """A base URL that says the deployment itself."""
    with AzureServer([Turn("Hi.")]) as server:
        model = AzureChatOpenAI(base_url=server.url, api_version=VERSION, api_key=KEY, max_retries=0)
        assert (model.invoke("Hello.").text, refused(server)) == ("Hi.", [])


async def atoken() -> str:
    """A token, asynchronously."""
    return "token"


@pytest.mark.parametrize(
    "given", [{"azure_ad_token": "token"}, {"azure_ad_token_provider": lambda: "token"}], ids=["a token", "a function"]
)
async def test_tokens_in_place_of_a_key(given: dict[str, Any]) -> None:
    """A token, or a function that returns one, synchronously and asynchronously."""
    with AzureServer([Turn("Hi."), Turn("Hi.")]) as server:
        model = azure(server, api_key=None, **given)
        assert (model.invoke("Hello.").text, (await model.ainvoke("Hello.")).text, refused(server)) == ("Hi.", "Hi.", [])


async def test_an_asynchronous_token_function() -> None:
    """It serves asynchronous requests; a synchronous one says what is missing."""
    with AzureServer([Turn("Hi.")]) as server:
        model = azure(server, api_key=None, azure_ad_async_token_provider=atoken)
        assert (await model.ainvoke("Hello.")).text == "Hi."
        with pytest.raises(ConfigurationError, match="give azure_ad_token_provider too"):
            model.invoke("Hello.")


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Endpoint, version and key come from Azure's variables; a token goes before a key; OpenAI's own key is not taken."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_API_VERSION", VERSION)
    model = AzureChatOpenAI(azure_deployment="mine")
    assert (model.openai_api_key, model.azure_endpoint, model.openai_api_version) == (None, "http://127.0.0.1:9", VERSION)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "secret-key")
    assert AzureChatOpenAI(azure_deployment="mine").openai_api_key.get_secret_value() == "secret-key"  # type: ignore[union-attr]
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "secret-token")
    model = AzureChatOpenAI(azure_deployment="mine")
    assert (model.openai_api_key, model.azure_ad_token.get_secret_value()) == (None, "secret-token")  # type: ignore[union-attr]
    assert "secret" not in f"{model!r} {model._identifying_params}"
    assert b"secret" not in pickle.dumps(model)
    assert pickle.loads(pickle.dumps(model)).azure_ad_token.get_secret_value() == "secret-token"
    assert AzureChatOpenAI(azure_deployment="mine", api_key="own").azure_ad_token is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"api_version": VERSION, "azure_deployment": "m"}, "where to"),
        ({"azure_endpoint": "http://a", "azure_deployment": "m"}, "which version"),
        ({"azure_endpoint": "http://a", "api_version": VERSION}, "which deployment"),
        ({"base_url": "http://a/v1", "api_version": VERSION, "model": "m"}, "no /openai"),
        ({"base_url": "http://a/openai", "api_version": VERSION, "azure_deployment": "m"}, "says the deployment itself"),
        ({"azure_endpont": "http://a"}, "did you mean 'azure_endpoint'"),
    ],
)
def test_what_cannot_work_is_said(given: dict[str, Any], said: str) -> None:
    """Missing and contradicting arguments are errors that name them."""
    with pytest.raises(ValueError, match=said):
        AzureChatOpenAI(**given)


def test_what_langchain_asks() -> None:
    """Provider, name and version in traces; the profile of the deployed model."""
    model = AzureChatOpenAI(
        azure_endpoint="http://a", azure_deployment="mine", api_version=VERSION, api_key="k", model="gpt-4o", model_version="0806"
    )
    said = model._get_ls_params()
    assert (said["ls_provider"], said["ls_model_name"], model._llm_type) == ("azure", "gpt-4o-0806", "azure-openai-chat")
    assert (model.profile or {})["max_input_tokens"] == 128_000
    assert model.lc_secrets == {"openai_api_key": "AZURE_OPENAI_API_KEY", "azure_ad_token": "AZURE_OPENAI_AD_TOKEN"}


def test_responses_on_azure() -> None:
    """The Responses API has one path for all; the deployment is the model."""
    with AzureResponsesServer(turns()) as server:
        model = azure(server, use_responses_api=True, tools=[get_temperature])
        assert model.invoke(QUESTION).text == "21 °C."
        assert [request["model"] for request in server.requests] == ["mine", "mine"]
        assert refused(server) == []


def test_what_is_known_of_a_deployments_model_holds_for_its_requests() -> None:
    """Whatever the deployment is called: its reasoning is asked for sealed where nothing is stored, and no temperature goes beside it."""
    with AzureResponsesServer(turns()[1:]) as server:
        about = {"model": "gpt-5.1", "store": False, "temperature": 0, "reasoning_effort": "low"}
        assert azure(server, use_responses_api=True, **about).invoke(QUESTION).text == "21 °C."
        request = server.requests[0]
        assert (request["include"], "temperature" in request) == (["reasoning.encrypted_content"], False)


WRONG: list[tuple[type[Any], dict[str, Any], type[Exception], str]] = [
    (AzureServer, {"api_key": "wrong"}, ModelAuthenticationError, "invalid subscription key"),
    (AzureServer, {"api_key": None, "azure_ad_token": "wrong"}, ModelAuthenticationError, "invalid subscription key"),
    (AzureServer, {"azure_deployment": "none"}, ModelNotFoundError, "API deployment for this resource does not exist"),
    (AzureServer, {"api_version": "latest"}, ModelNotFoundError, "Resource not found"),
    (AzureResponsesServer, {"api_key": "wrong"}, ModelAuthenticationError, "invalid subscription key"),
    (AzureResponsesServer, {"azure_deployment": "none"}, ModelNotFoundError, "API deployment for this resource does not exist"),
    (AzureResponsesServer, {"api_version": "2024-12-01-preview"}, ModelInvalidRequestError, "only for api-version 2025-03-01-preview"),
]


@pytest.mark.parametrize(("serve", "given", "kind", "said"), WRONG)
@pytest.mark.parametrize("stream", [False, True])
def test_what_azure_refuses_is_a_typed_error(
    serve: type[Any], given: dict[str, Any], kind: type[Exception], said: str, stream: bool
) -> None:
    """A wrong key, token, deployment or version is LangChain's error and the SDK's, in Azure's words, streamed or not."""
    with serve([Turn("Never.")]) as server:
        model = azure(server, use_responses_api=serve is AzureResponsesServer, **given)
        with pytest.raises(kind, match=said) as raised:
            list(model.stream(QUESTION)) if stream else model.invoke(QUESTION)
        assert isinstance(raised.value, openai.APIStatusError)
        assert (server.left, len(server.rejections)) == (1, 1)

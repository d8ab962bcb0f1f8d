"""What a failed call prints: the caller's line, what went wrong, and no more in between than langchain-openai prints."""

import asyncio
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest

from langchain_autotools import (
    AzureChatOpenAI,
    ChatAnthropic,
    ChatGoogleGenerativeAI,
    ChatOpenAI,
    ConfigurationError,
    ProviderError,
    ToolsAndMessagesMixin,
    new_messages,
)
from langchain_autotools.providers._transport.exchange import library
from tests.conftest import REPOSITORY
from tests.contract.wires import WIRES, Wire
from tests.support.openai_server import OpenAIServer
from tests.support.script import Failure

NO_MODEL = Failure(404, "The model `nowhere` does not exist", "invalid_request_error", "model_not_found")
KEYS = ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY")


def invoke(model: Any) -> None:
    """One whole reply."""
    model.invoke("Hi")


def stream(model: Any) -> None:
    """One stream."""
    list(model.stream("Hi"))


def ainvoke(model: Any) -> None:
    """One whole reply, asynchronously."""
    asyncio.run(model.ainvoke("Hi"))


def astream(model: Any) -> None:
    """One stream, asynchronously."""

    async def read() -> None:
        async for _ in model.astream("Hi"):
            pass

    asyncio.run(read())


Way = Callable[[Any], None]
THEIRS = {invoke: 19, stream: 15, ainvoke: 21}
"""What langchain-openai 1.7 prints of a 404, called in the same way: 44, 33 and 51 lines. (Its `astream` prints 91, of another error.)"""


def printed(error: BaseException) -> list[str]:
    """What Python prints of an error: an entry for each frame, for each error, and for what is between two of them. How many lines a
    frame takes depends on the release of Python."""
    return traceback.format_exception(error)


def forecast(city: str) -> str:
    """The forecast of a city."""
    return "rain"


@pytest.mark.parametrize("way", THEIRS, ids=lambda way: way.__name__)
def test_a_wrong_model_prints_no_more_than_langchain_openai(way: Way) -> None:
    """The error is typed and has its cause; neither a retry library nor the SDK is between the caller's line and it."""
    with OpenAIServer([NO_MODEL]) as server:
        model = ChatOpenAI(model="nowhere", base_url=server.url, api_key="key")
        with pytest.raises(openai.NotFoundError, match="does not exist") as caught:
            way(model)
    assert type(caught.value.__cause__) is openai.NotFoundError
    assert new_messages(caught.value) == []
    assert len(printed(caught.value)) <= THEIRS[way]


def test_a_wrong_model_of_a_run_prints_no_more_either() -> None:
    """Though the loop of the run is in between."""
    with OpenAIServer([NO_MODEL]) as server:
        with pytest.raises(openai.NotFoundError) as caught:
            invoke(ChatOpenAI(model="nowhere", base_url=server.url, api_key="key", tools=[forecast]))
    assert len(printed(caught.value)) <= THEIRS[invoke]


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No key is in the environment."""
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    yield


@pytest.mark.usefixtures("no_keys")
@pytest.mark.parametrize("tools", [[], [forecast]], ids=["one turn", "a run"])
@pytest.mark.parametrize("way", [invoke, stream, ainvoke, astream])
@pytest.mark.parametrize("model_class", [ChatOpenAI, ChatAnthropic, ChatGoogleGenerativeAI])
def test_a_missing_key_prints_the_callers_line(model_class: type[Any], way: Way, tools: list[Any]) -> None:
    """langchain-openai prints 7 frames of libraries; ours is one, and what to do."""
    model = model_class(model="any", tools=tools)
    with pytest.raises(ConfigurationError, match="no key") as caught:
        way(model)
    files = [frame.filename.removeprefix(str(REPOSITORY)) for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert len([file for file in files if "langchain" in file]) == 1
    assert len(printed(caught.value)) <= 9


@pytest.mark.usefixtures("no_keys")
def test_azure_prints_the_callers_line() -> None:
    """So does a class with more ways to be let in."""
    model = AzureChatOpenAI(azure_endpoint="http://localhost:1", azure_deployment="any", api_version="2025-04-01-preview")
    with pytest.raises(ConfigurationError) as caught:
        invoke(model)
    assert len(printed(caught.value)) <= 9


def test_code_of_the_user_stays_in_the_traceback() -> None:
    """A configuration error that comes through a model of the user's own keeps the way that it came."""

    class OwnModel(ToolsAndMessagesMixin):
        @property
        def _llm_type(self) -> str:
            return "own"

        def raw_stream(self, messages: Any, stop: Any = None, **kwargs: Any) -> Any:
            raise ConfigurationError("no endpoint")
            yield

    with pytest.raises(ConfigurationError) as caught:
        invoke(OwnModel())
    assert "in raw_stream" in "".join(printed(caught.value))


@pytest.mark.parametrize("tools", [[], [forecast]], ids=["one turn", "a run"])
@pytest.mark.parametrize("row", WIRES, ids=lambda row: row.name)
def test_a_dead_server_and_a_refused_key_print_half_a_page(row: Wire, tools: list[Any]) -> None:
    """The caller's line and the package's, and of what the SDK and its HTTP library raised the text: 50 lines at most, in every way."""
    with row.serve(lambda exchange: Failure(401, "No such key.")) as server:
        models = [row.model(server, tools=tools)]
    with row.serve(lambda exchange: Failure(401, "No such key.")) as server:
        models.append(row.model(server, tools=tools))
        for model in models:
            for way in (invoke, stream, ainvoke, astream):
                with pytest.raises(ProviderError) as caught:
                    way(model)
                lines = "".join(printed(caught.value)).splitlines()
                assert len(lines) <= 50 and sum(__file__ in line for line in lines) >= 1, "\n".join(lines)


def test_frames_of_the_users_own_transport_stay() -> None:
    """What went wrong in code of the user's, below the SDK, is told with its lines."""

    def answer(request: Any) -> Any:
        raise library().ConnectError("in my transport")

    arguments = {"transport": library().MockTransport(answer)}
    model = ChatGoogleGenerativeAI(model="any", base_url="http://gateway", api_key="key", client_args=arguments, max_retries=0)
    with pytest.raises(ProviderError) as caught:
        invoke(model)
    assert "in answer" in "".join(printed(caught.value))


def test_causes_that_lead_back_to_each_other_end() -> None:
    """An HTTP library may link its errors in a circle: the error is translated all the same."""

    def answer(request: Any) -> Any:
        first, second = library().ConnectError("first"), ValueError("second")
        first.__cause__, second.__cause__ = second, first
        raise first

    arguments = {"transport": library().MockTransport(answer)}
    model = ChatGoogleGenerativeAI(model="any", base_url="http://gateway", api_key="key", client_args=arguments, max_retries=0)
    with pytest.raises(ProviderError) as caught:
        invoke(model)
    assert caught.value._render_traceback_()


def test_a_notebook_shows_the_cell_and_one_line(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of errors of vendors and of arguments that cannot work; a function of the user's that is in between is shown too."""
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)  # the shell would warn of one that is not this Python's
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    shell.colors = "nocolor"
    shell.run_cell("from langchain_autotools import ChatOpenAI\ndef ask(model):\n    return model.invoke('Hi')")
    for cell, said in (
        ("ask(ChatOpenAI(model='any', base_url='http://127.0.0.1:9', api_key='k', max_retries=0))", "OpenAIConnectionError: No reply from"),
        ("ChatOpenAI(model='any', api_key='k').invoke('Hi', max_turns=-1)", "ConfigurationError: max_turns"),
    ):
        capfd.readouterr()
        shell.run_cell(cell)
        out, err = capfd.readouterr()
        lines = (out + err).strip().splitlines()
        assert cell in out + err and any(said in line for line in lines) and len(lines) <= 7, "\n".join(lines)

"""`ChatLocal` over a real server process (a stand-in for llama.cpp inside): whole runs, settings, and nothing of another vendor's."""

import asyncio
import pickle
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_autotools import ChatLocal, ConfigurationError, new_messages, run_usage
from langchain_autotools.providers.local import CHAT_TEMPLATE, LocalServerError, close_server
from langchain_autotools.providers.local import chat_model as module
from langchain_autotools.providers.local.weights import MODEL_PATH_VARIABLE

from .test_server import get

pytestmark = pytest.mark.usefixtures("fake_server_package")

QUESTION = "How warm is it in Paris and in Rome?"


def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return f"{len(city)} °C in {city}"


@pytest.fixture
def model(gguf: Path) -> ChatLocal:
    """A model on the stand-in."""
    return ChatLocal(model_path=gguf, tools=[get_temperature])


def test_a_streamed_run_calls_tools_and_answers(model):
    """The first use starts the server; two calls run, and the answer tells both results."""
    history = [HumanMessage(QUESTION)]
    text = ""
    for chunk in model.stream(history):
        text += chunk.text
        history += new_messages(chunk)
    assert text == "It is 5 °C in Paris and 4 °C in Rome."
    assert [type(message) for message in history] == [HumanMessage, AIMessage, ToolMessage, ToolMessage, AIMessage]
    assert run_usage(chunk)["total_tokens"] == 30


def test_invoke_answers_alike_and_keys_are_checked(model):
    """Without streaming the same; a request without the server's key is refused, so the model must have sent it."""
    assert model.invoke(QUESTION).text == "It is 5 °C in Paris and 4 °C in Rome."


def test_it_works_in_one_event_loop_after_another(model):
    """`ainvoke` and `astream` in two loops, the first of which starts the server."""

    async def run() -> tuple[str, str]:
        streamed = "".join([chunk.text async for chunk in model.astream(QUESTION)])
        return streamed, (await model.ainvoke(QUESTION)).text

    for _ in range(2):
        with asyncio.Runner() as runner:
            assert runner.run(run()) == ("It is 5 °C in Paris and 4 °C in Rome.",) * 2


def test_models_share_the_server_and_survive_its_end(model, gguf):
    """A second model uses the same server; after `close` the next request starts a new one, for both."""
    other = ChatLocal(model_path=gguf)
    assert other.invoke("Hi").text == "Hello."
    model.close()
    assert model.invoke(QUESTION).text.startswith("It is")
    assert other.invoke("Hi").text == "Hello."


def test_the_vendors_environment_and_proxies_are_ignored(gguf, monkeypatch):
    """Keys, addresses and proxies meant for others change nothing: this server is on this machine."""
    for name, value in {
        "OPENAI_API_KEY": "sk-secret",
        "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer sk-other",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "OPENAI_PROXY": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "ALL_PROXY": "http://127.0.0.1:9",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_PROXY", raising=False)
    model = ChatLocal(model_path=gguf)
    assert model.invoke("Hi").text == "Hello."
    assert asyncio.run(model.ainvoke("Hi")).text == "Hello."
    assert model.openai_api_key is None and model.lc_secrets == {}


def test_settings_reach_the_server(gguf, monkeypatch):
    """Context size, threads, template and name are handed over; the path may come from the environment."""
    monkeypatch.setenv(MODEL_PATH_VARIABLE, str(gguf))
    model = ChatLocal(context_size=2048, threads=3, chat_template="{{ messages }}", model="pet")
    _, told = get(model.start().base_url + "/settings")
    assert (told["n_ctx"], told["threads"], told["chat_template"], told["model_alias"]) == (2048, 3, "{{ messages }}", ["pet"])


def test_a_template_may_be_a_file(gguf, tmp_path):
    """A path is read; a file of the user's own without a template keeps the one inside it."""
    file = tmp_path / "own.jinja"
    file.write_text("{{ own }}")
    for given, expected in ((file, "{{ own }}"), (str(file), "{{ own }}"), (None, "")):
        model = ChatLocal(model_path=gguf, chat_template=given)
        assert get(model.start().base_url + "/settings")[1]["chat_template"] == expected
        model.close()
    with pytest.raises(ConfigurationError, match=r"chat_template: .*none\.jinja cannot be read: No such file"):
        ChatLocal(model_path=gguf, chat_template=tmp_path / "none.jinja").start()


def test_the_default_weights_get_our_template(gguf, monkeypatch):
    """The default weights are served with the package's own template and sampling, under their own name."""
    monkeypatch.setattr(module, "find_weights", lambda *_: module.Weights(gguf, is_default=True))
    monkeypatch.delenv(MODEL_PATH_VARIABLE, raising=False)
    model = ChatLocal()
    _, told = get(model.start().base_url + "/settings")
    assert told["chat_template"] == CHAT_TEMPLATE.read_text(encoding="utf-8")
    assert told["repeat_penalty"] == 1.1 and told["model_alias"] == [model.model_name] == ["qwen2.5-coder-0.5b-instruct"]


def test_the_model_is_named_after_its_file(gguf, monkeypatch):
    """Without a name it is the file's, wherever the path comes from; a given name wins."""
    monkeypatch.delenv(MODEL_PATH_VARIABLE, raising=False)
    assert ChatLocal(model_path=gguf).model_name == "tiny"
    assert ChatLocal(model_path=str(gguf), model="pet").model == "pet"
    monkeypatch.setenv(MODEL_PATH_VARIABLE, "/somewhere/big.gguf")
    assert ChatLocal().model_name == "big"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"base_url": "http://127.0.0.1/v1"}, "'base_url': the server is this program's own"),
        ({"api_key": "x"}, "'api_key': the server is this program's own"),
        ({"context_sise": 1}, "did you mean 'context_size'"),
    ],
)
def test_arguments_that_make_no_sense_here_are_refused(arguments, message):
    """Another server's arguments and misspelt ones are errors that say what to do."""
    with pytest.raises(ConfigurationError, match=message):
        ChatLocal(**arguments)


@pytest.mark.parametrize("arguments", [{"context_size": 10}, {"threads": 0}, {"gpu_layers": -1}])
def test_values_that_cannot_work_are_refused(arguments):
    """Numbers that the server could not run with are refused at once, by name."""
    with pytest.raises(ValueError, match=f"{next(iter(arguments))}: .*greater than or equal to"):
        ChatLocal(**arguments)


def test_defaults_suit_a_small_model(gguf):
    """Temperature 0, a bounded reply, no repeated requests, usage in streams, room for the reply in the profile."""
    model = ChatLocal(model_path=gguf)
    assert (model.temperature, model.max_tokens, model.max_retries, model.stream_usage) == (0, 512, 0, True)
    assert model.profile["max_input_tokens"] == model.context_size - 512


def test_nothing_happens_before_the_first_request(tmp_path):
    """Constructing, copying, pickling and describing a model looks for nothing and starts nothing."""
    model = ChatLocal(model_path=tmp_path / "none.gguf", temperature=0.5)
    copy = pickle.loads(pickle.dumps(model.model_copy()))
    assert copy.temperature == 0.5 and copy.model_path == model.model_path
    assert model._get_ls_params()["ls_provider"] == "local" and model._llm_type == "local-chat"
    assert model._identifying_params["model_path"].endswith("none.gguf")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        model.invoke("Hi")


def test_a_server_that_cannot_start_fails_the_request(gguf):
    """The error of the start is the error of the request, sync and async."""
    gguf.write_text("GGUF broken")
    model = ChatLocal(model_path=gguf)
    with pytest.raises(LocalServerError, match="version 99"):
        model.invoke("Hi")
    with pytest.raises(LocalServerError, match="version 99"):
        asyncio.run(model.ainvoke("Hi"))


def test_close_server_is_for_every_model(model):
    """The module's function stops what any model started."""
    base_url = model.start().base_url
    close_server()
    with pytest.raises(OSError):
        get(base_url + "/settings")

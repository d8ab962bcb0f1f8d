"""What the package uses of other libraries beyond their documented interfaces still holds: one test for each dependence, named after it."""

import json
import pickle
from io import BytesIO
from typing import Annotated, Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel, FakeListChatModelError
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.prompt_values import StringPromptValue
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.errors import GraphInterrupt
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from langchain_autotools import compat
from langchain_autotools.chunks import copier
from langchain_autotools.testing import ScriptedChatModel


class NotedModel(ScriptedChatModel):
    """Notes which of core's hooks are asked."""

    @property
    def asked(self) -> list[str]:
        """The hooks in the order in which they were asked."""
        noted: list[str] = self.__dict__.setdefault("noted", [])
        return noted

    def _get_invocation_params(self, stop: list[str] | None = None, **kwargs: Any) -> dict[str, Any]:
        self.asked.append("_get_invocation_params")
        return super()._get_invocation_params(stop, **kwargs)

    def _get_llm_string(self, stop: list[str] | None = None, **kwargs: Any) -> str:
        self.asked.append("_get_llm_string")
        return super()._get_llm_string(stop, **kwargs)

    def _combine_llm_outputs(self, llm_outputs: list[dict[str, Any] | None]) -> dict[str, Any]:
        self.asked.append("_combine_llm_outputs")
        return super()._combine_llm_outputs(llm_outputs)

    def _resolve_model_profile(self) -> Any:
        return {"max_input_tokens": 7}


class Shout(BaseTool):
    """A tool as a class of its own."""

    name: str = "shout"
    description: str = "Says it louder."

    def _run(self, text: str, secret: Annotated[str, InjectedToolArg] = "") -> str:
        return text.upper()


# ---------------------------------------------------------------------------------------------- pydantic


class Writing(pickle.Pickler):
    """A pickler that writes functions its own way, as cloudpickle's does: in Python, by `reducer_override`."""

    def reducer_override(self, obj: Any) -> Any:
        """Nothing of its own."""
        return NotImplemented

    def dump(self, obj: Any) -> None:
        """As the base class."""
        super().dump(obj)


class Asking:
    """An object that asks, while it is pickled, who does it."""

    found: type[pickle.Pickler] | None = None

    def __getstate__(self) -> dict[str, Any]:
        Asking.found = compat.current_pickler()
        return {}


def test_python_shows_which_pickler_is_writing() -> None:
    """Among the callers of `__getstate__`."""
    for write, expected in ((pickle.dumps, pickle.Pickler), (lambda value: Writing(BytesIO()).dump(value), Writing)):
        write([Asking()])  # type: ignore[operator]
        assert Asking.found is expected
    assert compat.current_pickler() is pickle.Pickler


def test_pydantic_has_one_metaclass_for_all_models() -> None:
    """A class of it may put a base before another one."""

    class Between(BaseChatModel):
        pass

    class Meta(compat.ModelMetaclass):
        def __new__(mcs, name: str, bases: tuple[type[Any], ...], namespace: dict[str, Any], *args: Any, **kwargs: Any) -> type:
            return super().__new__(mcs, name, (Between, *bases), namespace, *args, **kwargs)

    assert issubclass(Meta("Made", (BaseChatModel,), {"__module__": __name__}), Between)


def test_pydantic_lets_models_be_made_through_its_slots() -> None:
    """A message made past validation is what `model_copy` makes: equal, of the same class, with the same fields set."""
    chunk = AIMessageChunk(content="a", id="1")
    made = copier(chunk, ("content",))({"content": "b"})
    expected = chunk.model_copy(update={"content": "b"})
    assert made == expected
    assert made.model_fields_set == expected.model_fields_set
    assert made.model_dump() == expected.model_dump()


# ---------------------------------------------------------------------------------------------- langchain_core: messages and models


def test_core_makes_no_call_of_unparsable_arguments() -> None:
    """Arguments behind the mark are an invalid call, alone and in a sum, also where they would be an object without it."""
    fragments: list[Any] = [{"name": "f", "args": compat.UNPARSABLE + '{"x": 1}', "id": "1", "index": 0, "type": "tool_call_chunk"}]
    chunk = AIMessageChunk(content="", tool_call_chunks=fragments)
    for message in (chunk, AIMessageChunk(content="") + chunk):
        assert message.tool_calls == []
        assert [call["args"] for call in message.invalid_tool_calls] == [compat.UNPARSABLE + '{"x": 1}']


def test_core_keeps_its_cache_key_in_the_dict_of_the_model() -> None:
    """The entry that copies must lose is there once core has asked for it."""
    model = ScriptedChatModel(replies=["a"], cache=InMemoryCache())
    model.invoke("Hi")
    assert compat.CACHE_KEY in model.__dict__


@pytest.mark.parametrize("given", ["Hi", StringPromptValue(text="Hi"), [HumanMessage("Hi")], [("user", "Hi")]], ids=type)
def test_core_converts_every_input_to_messages(given: Any) -> None:
    """Texts, prompts and messages come to messages."""
    (message,) = compat.input_messages(ScriptedChatModel(replies=[]), given)
    assert isinstance(message, HumanMessage)
    assert message.content == "Hi"


def test_core_says_whether_it_would_stream() -> None:
    """By default it does; with `disable_streaming` it does not."""
    assert compat.should_stream(ScriptedChatModel(replies=[]), {}, async_api=False)
    assert compat.should_stream(ScriptedChatModel(replies=[]), {}, async_api=True)
    assert not compat.should_stream(ScriptedChatModel(replies=[], disable_streaming=True), {}, async_api=False)


def test_core_asks_for_invocation_params_first_and_for_its_cache_by_the_llm_string() -> None:
    """Both hooks that keep secrets out of traces and caches are asked on every request."""
    model = NotedModel(replies=["a"], cache=InMemoryCache())
    model.invoke("Hi")
    assert model.asked[0] == "_get_invocation_params"
    assert "_get_llm_string" in model.asked


def test_core_asks_a_model_to_combine_the_outputs_of_several_prompts() -> None:
    """`generate` over two prompts gives the combined `llm_output` of the model."""
    model = NotedModel(replies=["a", "b"])
    model.generate([[HumanMessage("1")], [HumanMessage("2")]])
    assert "_combine_llm_outputs" in model.asked


def test_core_fills_the_profile_in_by_resolving_it() -> None:
    """A model without a given profile has the one that its class looks up."""
    assert NotedModel(replies=[]).profile == {"max_input_tokens": 7}


# ---------------------------------------------------------------------------------------------- langchain_core: tools


class _Given(compat.InjectedByType):
    """Something that programs give to tools."""


def test_core_takes_a_parameter_of_such_a_type_for_injected() -> None:
    """It declares neither those nor what is marked."""

    def takes(text: str, given: _Given, secret: Annotated[str, InjectedToolArg]) -> str:
        """Take it."""
        return text

    assert list(StructuredTool.from_function(takes).args) == ["text"]


def test_core_makes_classes_of_arguments_in_a_module_of_its_own() -> None:
    """What it has inferred from a function is told from what somebody wrote."""

    class Written(BaseModel):
        text: str

    inferred = StructuredTool.from_function(Shout()._run, name="shout", description="Shout.").args_schema
    assert (compat.is_inferred(inferred), compat.is_inferred(Written), compat.is_inferred(None)) == (True, False, False)


def test_core_reads_docstrings_in_googles_style() -> None:
    """The description, and those of the parameters that there are."""

    def shout(text: str) -> str:
        """Say it louder.

        Args:
            text: What to say.
        """
        return text

    assert compat.described_parameters(shout, ["text"]) == ("Say it louder.", {"text": "What to say."})


def test_core_runs_the_methods_that_stand_on_the_tool_itself() -> None:
    """`invoke` finds `_run` on the instance, and the original is as it was."""
    tool = Shout()
    changed = compat.with_methods(tool, {"_run": lambda text: f"<{text}>"})
    assert (changed.invoke({"text": "a"}), tool.invoke({"text": "a"})) == ("<a>", "A")


async def test_core_asks_the_tool_itself_for_its_input_and_for_that_of_its_traces() -> None:
    """One value by position reaches `_run`, with core's configuration and run manager beside it, also from `ainvoke`."""

    def run(value: Any, /, *, config: RunnableConfig, run_manager: Any = None) -> str:
        return f"{value} {config['tags']} {type(run_manager).__name__}"

    methods = {
        "_run": run,
        "_to_args_and_kwargs": lambda value, call_id: ((f"<{value['text']}>",), {}),
        "_filter_injected_args": lambda value: {"shown": 1},
    }
    changed, told = compat.with_methods(Shout(), methods), _Told()
    config: RunnableConfig = {"tags": ["T"], "callbacks": [told]}
    expected = "<a> ['T'] CallbackManagerForToolRun"
    assert (changed.invoke({"text": "a"}, config), await changed.ainvoke({"text": "a"}, config)) == (expected, expected)
    assert told.inputs == [{"shown": 1}] * 2


def test_core_says_of_its_methods_where_they_come_from() -> None:
    """A method of core's own is told from one that a class has in its place."""
    assert compat.is_core(Shout.invoke)
    assert not compat.is_core(Shout._run)


class _Told(BaseCallbackHandler):
    def __init__(self) -> None:
        self.inputs: list[Any] = []

    def on_tool_start(self, *args: Any, inputs: Any = None, **kwargs: Any) -> None:
        self.inputs.append(inputs)


class _Raises(BaseCallbackHandler):
    raise_error = True

    def on_tool_end(self, output: Any, **kwargs: Any) -> None:
        """Break."""
        raise RuntimeError("of the handler")


def test_core_calls_handlers_from_its_callback_manager() -> None:
    """An exception of a handler is told from one of the tool."""

    def fail() -> str:
        """Fail."""
        raise RuntimeError("of the tool")

    with pytest.raises(RuntimeError, match="of the handler") as by_handler:
        Shout().invoke({"text": "a"}, {"callbacks": [_Raises()]})
    with pytest.raises(RuntimeError, match="of the tool") as by_tool:
        StructuredTool.from_function(fail).invoke({})
    assert compat.raised_by_handler(by_handler.value, __name__)
    assert not compat.raised_by_handler(by_tool.value, __name__)


class _RaisesAtTheEnd(BaseCallbackHandler):
    """A handler that breaks when a reply is whole."""

    raise_error = True

    def on_llm_end(self, *_: Any, **__: Any) -> None:
        """Break."""
        raise RuntimeError("of the handler")


async def test_core_holds_a_whole_reply_while_its_handlers_are_told() -> None:
    """The reply that an error of a handler took with it is found, whichever way it came; of one that is not whole nothing is."""
    config: RunnableConfig = {"callbacks": [_RaisesAtTheEnd()]}
    for way in ("invoke", "stream", "ainvoke", "astream"):
        model = FakeListChatModel(responses=["whole"])
        with pytest.raises(RuntimeError, match="of the handler") as raised:
            if way in ("invoke", "stream"):
                list(getattr(model, way)("Hello", config))
            elif way == "ainvoke":
                await model.ainvoke("Hello", config)
            else:
                _ = [chunk async for chunk in model.astream("Hello", config)]
        reply = compat.whole_reply(raised.value)
        assert type(reply) is AIMessage and reply.text == "whole"
    with pytest.raises(FakeListChatModelError) as broken:
        list(FakeListChatModel(responses=["whole"], error_on_chunk_number=2).stream("Hello", config))
    assert compat.whole_reply(broken.value) is None


# ---------------------------------------------------------------------------------------------- langgraph


@pytest.mark.parametrize("name", ["ToolRuntime", "InjectedStore", "InjectedState"])
def test_langgraph_has_the_classes_of_injected_arguments(name: str) -> None:
    """Each is found under its name once `langgraph.prebuilt` is loaded."""
    pytest.importorskip("langgraph.prebuilt")
    assert isinstance(compat.graph_class(name), type)


def test_langgraph_gives_its_runtime_and_says_when_a_node_is_resumed() -> None:
    """Inside a graph there is a runtime; the second pass through an interrupted node is a resumed one."""
    seen: list[tuple[bool, bool]] = []

    def node(state: MessagesState, config: RunnableConfig) -> dict[str, list[BaseMessage]]:
        """Ask, and note what can be known."""
        seen.append((compat.graph_runtime() is not None, compat.is_resumed(config)))
        return {"messages": [AIMessage(str(interrupt("well?")))]}

    graph = StateGraph(MessagesState).add_node("node", node).add_edge(START, "node").add_edge("node", END).compile(InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    graph.invoke({"messages": [HumanMessage("Hi")]}, config)
    graph.invoke(Command(resume="yes"), config)
    assert seen == [(True, False), (True, True)]
    assert compat.graph_runtime() is None


def test_langgraph_signals_by_exceptions_that_bubble_up() -> None:
    """An interrupt is for the graph; another error is not."""
    assert compat.is_graph_signal(GraphInterrupt(()))
    assert not compat.is_graph_signal(RuntimeError("no"))


def test_langgraph_misses_its_graph_with_a_key_error_of_its_own() -> None:
    """Code that asks for the graph outside of one is told from code that looked up another key."""
    with pytest.raises(Exception) as outside:
        get_stream_writer()
    with pytest.raises(KeyError) as other:
        {}["x"]
    assert compat.asks_for_a_graph(outside.value) or "outside of a runnable context" in str(outside.value)
    assert not compat.asks_for_a_graph(other.value)


# ---------------------------------------------------------------------------------------------- Python and the SDKs


@pytest.mark.parametrize(("text", "expected"), [('{"a": "b', True), ('{"a": ', False), ('{"a": 1}}', False)])
def test_python_says_that_json_text_broke_off_inside_a_string(text: str, expected: bool) -> None:
    """An unterminated string is told from all else that can be wrong."""
    with pytest.raises(json.JSONDecodeError) as broken:
        json.loads(text)
    assert compat.is_unterminated(broken.value) is expected


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_the_sdks_have_a_client_class_that_names_their_http_library(name: str) -> None:
    """The public base of `DefaultHttpxClient` comes from the HTTP library under the SDK."""
    from langchain_autotools.providers._transport.clients import http_library

    library = http_library(pytest.importorskip(name))
    assert library.__name__ in {"httpx", "httpx2"}
    assert issubclass(library.Client, object)
    assert callable(library.create_ssl_context)


def test_anthropics_sdk_says_that_a_key_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any key its request is refused with the words that are translated."""
    import anthropic

    for variable in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(TypeError, match="authentication method"):
        anthropic.Anthropic(max_retries=0).messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "Hi"}])

"""What comes out of the same replies: messages, chunks, errors, what callbacks are told, cached replies."""

from __future__ import annotations

import asyncio
import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache, reduce
from operator import add
from typing import Any

from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage, message_chunk_to_message
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import LLMResult
from langchain_core.runnables import ConfigurableField

from tests.surface.observed import ABSENT, Seen, flat, of_failure, of_message
from tests.surface.pairs import THEIRS, Stage
from tests.surface.replies import FAILURES, TURNS, replies_of

QUESTION = "How warm is it?"
_V1 = {"output_version": "v1"}


@cache
def runner() -> asyncio.Runner:
    """One event loop for all: clients that are kept belong to the loop that they were first used in."""
    return asyncio.Runner()


def gathered(stream: Any) -> list[Any]:
    """All that an asynchronous stream yields."""

    async def read() -> list[Any]:
        return [one async for one in stream]

    return runner().run(read())


def _summed(chunks: list[Any]) -> BaseMessage:
    return message_chunk_to_message(reduce(add, chunks))


WAYS: Mapping[str, Callable[[Any], BaseMessage]] = {
    "invoke": lambda model: model.invoke(QUESTION),
    "ainvoke": lambda model: runner().run(model.ainvoke(QUESTION)),
    "stream": lambda model: _summed(list(model.stream(QUESTION))),
    "astream": lambda model: _summed(gathered(model.astream(QUESTION))),
}


def outcome(make: Callable[[], Any], see: Callable[[Any], Seen] = flat) -> Seen:
    """What a call comes to: what it gives, or the error that it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return see(make())
        except Exception as error:  # whatever either side refuses by
            return of_failure(error)


def messages(stage: Stage) -> Iterator[tuple[str, str, Seen]]:
    """Each reply in each way, as v0 and as v1."""
    for name, reply in replies_of(stage.pair.wire).items():
        stage.reply = reply
        for version in ({}, _V1):
            for way, run in WAYS.items():
                if not (version and way.startswith("a")):
                    yield name, f"{way} v1" if version else way, outcome(lambda: run(stage.model(**version)), of_message)  # noqa: B023 - called at once


def failures(stage: Stage) -> Iterator[tuple[str, str, Seen]]:
    """What a refused request raises."""
    attempts = 1 if stage.pair.wire == "google" and stage.side == THEIRS else 0  # Google's class counts attempts
    for name, stage.reply in FAILURES.items():
        if name >= "500" and stage.pair.cls == "ChatOpenRouter":  # its SDK tries again for minutes
            continue
        for way in ("invoke", "stream"):
            yield name, way, outcome(lambda: WAYS[way](stage.model(max_retries=attempts)), of_message)  # noqa: B023 - called at once


class Told(BaseCallbackHandler):
    """Keeps what callbacks are told of a model's run."""

    def __init__(self) -> None:
        self.seen: Seen = {}

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        """Its metadata and the parameters of the request."""
        self.seen |= flat({"metadata": kwargs.get("metadata"), "options": kwargs.get("options")})
        self.seen |= flat(kwargs.get("invocation_params"), "invocation_params") | {"serialized": str(serialized.get("type"))}

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """What is told beside the message."""
        self.seen |= flat(response.llm_output, "llm_output") | flat(response.generations[0][0].generation_info, "generation_info")


def callbacks(stage: Stage) -> Iterator[tuple[str, str, Seen]]:
    """What a tracer is told of a call, whole and streamed."""
    stage.reply = TURNS["text"]
    for way in ("invoke", "stream"):
        told = Told()
        yield "text", way, outcome(lambda: WAYS[way](stage.make(temperature=0.5, callbacks=[told])), lambda _: told.seen)  # noqa: B023 - called at once


def cached_replies(stage: Stage) -> Iterator[tuple[str, str, Seen]]:
    """A reply from LangChain's cache; how many requests were made."""
    stage.reply = TURNS["usage"]
    for way in ("invoke", "stream"):
        model = stage.make(cache=InMemoryCache())
        before = len(stage.server.exchanges)

        def again(run: Any = WAYS[way], model: Any = model) -> BaseMessage:
            run(model)
            return run(model)  # type: ignore[no-any-return]

        seen = outcome(again, of_message) | {"requests": str(len(stage.server.exchanges) - before)}
        yield "cached", way, _changed(seen, outcome(lambda: WAYS[way](stage.model()), of_message))  # noqa: B023 - called at once


def _changed(seen: Seen, usual: Seen) -> Seen:
    """What is seen otherwise than usual; what usually differs is found among the replies."""
    return {path: seen.get(path, ABSENT) for path in {*seen, *usual} if seen.get(path) != usual.get(path)} or {"as": "usual"}


_OTHER_WAYS: Mapping[str, Callable[[Any], Seen]] = {
    "batch": lambda model: of_message(model.batch(["a", "b"])[1]),
    "abatch": lambda model: of_message(runner().run(model.abatch(["a", "b"]))[1]),
    "generate": lambda model: _result(model.generate([[QUESTION]])),
    "stream events": lambda model: {"events": " ".join(dict.fromkeys(one["event"] for one in gathered(model.astream_events(QUESTION))))},
    "with_config": lambda model: of_message(model.with_config({"tags": ["a"]}).invoke(QUESTION)),
    "configurable": lambda model: of_message(
        model.configurable_fields(temperature=ConfigurableField(id="warm")).with_config(configurable={"warm": 0.5}).invoke(QUESTION)
    ),
    "alternatives": lambda model: of_message(
        model.configurable_alternatives(ConfigurableField(id="which"), other=model)
        .with_config(configurable={"which": "other"})
        .invoke(QUESTION)
    ),
    "with_retry": lambda model: of_message(model.with_retry(stop_after_attempt=1).invoke(QUESTION)),
    "with_fallbacks": lambda model: of_message(model.with_fallbacks([model]).invoke(QUESTION)),
    "chain": lambda model: {"text": (model | StrOutputParser()).invoke(QUESTION)},
    "pickled": lambda model: of_message(pickle.loads(pickle.dumps(model)).invoke(QUESTION)),
    "copied": lambda model: of_message(model.model_copy(update={"temperature": 0.1}).invoke(QUESTION)),
}


def other_ways(stage: Stage) -> Iterator[tuple[str, str, Seen]]:
    """The other methods that make a request."""
    stage.reply = TURNS["text"]
    usual = outcome(lambda: WAYS["invoke"](stage.model()), of_message)
    for way, run in _OTHER_WAYS.items():
        seen = outcome(lambda: run(stage.model()), lambda seen: seen)  # noqa: B023 - called at once
        yield "text", way, _changed(seen, usual)


def _result(result: LLMResult) -> Seen:
    return flat(result.llm_output, "llm_output") | of_message(result.generations[0][0].message)  # type: ignore[union-attr]

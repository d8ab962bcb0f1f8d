"""Recorded replies of real servers of the chat completions wire, served again over HTTP: text, calls, reasoning, signatures and token
counts come out exactly.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import openai
import pytest
from langchain_core.exceptions import ContextOverflowError, ModelError
from langchain_core.messages import AIMessage

from langchain_autotools import ChatOpenAI
from tests.support.accounts import unlike
from tests.support.openai_server import OpenAIServer
from tests.support.recorded import Recording, differences
from tests.support.recorded_suite import RecordedSuite, Records, Serve, failed, streamed, whole
from tests.support.scripted_server import Script


def described(record: Recording, message: AIMessage) -> dict[str, Any]:
    """What differs between a message's metadata and the record."""
    usage = message.usage_metadata or {}
    counts = record.expected["usage_norm"] or {}
    names = {"input": "input_tokens", "output": "output_tokens", "total": "total_tokens"}
    pairs = {name: (usage.get(names[name]), counts[name]) for name in names if counts.get(name) is not None}
    metadata = message.response_metadata
    pairs["finish"] = (metadata.get("finish_reason") or None, record.expected["finish_reason"])
    pairs["model"] = (metadata.get("model_name") or None, record.expected["model"] or None)
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


class TestChatCompletions(RecordedSuite):
    wire = "openai-chat"
    least: ClassVar[tuple[int, int]] = (151, 351)

    def server(self, script: Script) -> OpenAIServer:
        """A server that takes any request."""
        return OpenAIServer(script, rules=None)

    def model(self, url: str) -> ChatOpenAI:
        """A model that asks the server."""
        return ChatOpenAI(model="recorded", base_url=url, api_key="k", max_retries=0)

    def asking(self, model: Any, name: str, record: Recording) -> Any:
        """The model with the recorded tools declared, asking for the record (for several choices where the recorded client did)."""
        bound = model.bind_tools(record.tools) if record.tools else model
        several = {"n": record.request["n"]} if record.request.get("n", 1) > 1 else {}
        return bound.bind(model=name, **several)

    def told(self, record: Recording, message: AIMessage) -> Any:
        """What a message says otherwise than the record."""
        return [*differences(record, message), *unlike(record, message)]

    def test_invoke_reads_streams_exactly(self, records: Records, serve: Serve) -> None:
        """A model told to stream inside `invoke` gives the same messages."""
        model = serve("random").model_copy(update={"streaming": True})
        assert self.wrong(streamed(records), lambda name, record: self.invoked(model, name, record)) == {}

    def test_many_threads_share_one_model(self, records: Records, serve: Serve) -> None:
        """Streams of one model at the same time do not mix."""
        model = serve("random")
        chosen = streamed(records)
        with ThreadPoolExecutor(16) as pool:
            messages = dict(zip(chosen, pool.map(lambda item: self.summed(model, *item), chosen.items()), strict=True))
        assert self.wrong(chosen, lambda name, record: messages[name]) == {}

    def test_usage_and_names_are_read(self, records: Records, serve: Serve) -> None:
        """Tokens, finish reason and the model's name are what the server says; a stream counts them once."""
        model = serve("arrived")
        found = {}
        for name, record in {**streamed(records), **whole(records)}.items():
            message = self.summed(model, name, record) if record.streamed else self.invoked(model, name, record)
            if told := described(record, message):
                found[record.id] = told
        assert found == {}

    def test_errors_are_typed(self, every: Records, serve: Serve) -> None:
        """A recorded error is raised as the vendor SDK's error and as LangChain's, with the server's words; that of a call which the server
        could not read is a turn whose call does not run (wire quirk T-07)."""
        model = serve("arrived")
        assert len(failed(every)) >= 5
        for name, record in failed(every).items():
            if b"failed_generation" in record.body:
                message = self.summed(model, name, record) if record.streamed else self.invoked(model, name, record)
                assert message.invalid_tool_calls and not message.tool_calls, record.id
                continue
            with pytest.raises((openai.APIError, ModelError)) as raised:
                self.summed(model, name, record) if record.streamed else self.invoked(model, name, record)
            error = raised.value
            assert isinstance(error, openai.APIError) and isinstance(error, ModelError | ContextOverflowError), (record.id, type(error))
            assert record.expected["error"]["message"][:40] in str(error), record.id
            if not record.streamed:
                assert isinstance(error, openai.APIStatusError) and error.status_code == record.status

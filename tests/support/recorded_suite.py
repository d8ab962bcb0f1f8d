"""Recorded replies, served again over HTTP and read in every way: the suite that each wire's tests inherit.

Each request carries its recording's name as the model's; the server answers with that recording's bytes. All is done with one recording
of each server and style, and with all of them under the marker `exhaustive`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, ClassVar

import pytest
from langchain_core.exceptions import ModelError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage, message_chunk_to_message

from langchain_autotools.messages.calls import calls_of
from tests.support.http_server import Exchange
from tests.support.perturbed import broken_off, with_strange_values, with_unknown_keys
from tests.support.recorded import Recording, one_of_each, recordings, styles
from tests.support.script import Raw
from tests.support.scripted_server import Script, ScriptedServer

Records = dict[str, Recording]
"""Recordings by name."""
Serve = Callable[[str | Callable[[Recording], bytes]], Any]
"""From the name of a way to cut bytes into pieces, or a change to them, to a model that is answered with recordings."""


def streamed(records: Records) -> Records:
    """The streams that end well."""
    return {name: record for name, record in records.items() if record.streamed and not record.failed}


def whole(records: Records) -> Records:
    """The whole bodies that are no errors."""
    return {name: record for name, record in records.items() if not record.streamed and not record.failed}


def failed(records: Records) -> Records:
    """The errors, streamed or whole."""
    return {name: record for name, record in records.items() if record.failed}


def unequal(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What was found otherwise than wanted."""
    return {key: (found[key], wanted[key]) for key in wanted if found[key] != wanted[key]}


def followed(message: AIMessage) -> list[BaseMessage]:
    """A history in which a message's calls are answered, and its user goes on."""
    return [HumanMessage("q"), message, *(ToolMessage("r", tool_call_id=call.id) for call in calls_of(message)), HumanMessage("?")]


class RecordedSuite:
    """A wire gives `server`, `model`, `asking` and `told`."""

    wire: ClassVar[str]
    least: ClassVar[tuple[int, int]]
    """How many streams and whole bodies there are at the least."""

    def server(self, script: Script) -> ScriptedServer:
        """A server that takes any request."""
        raise NotImplementedError

    def model(self, url: str) -> Any:
        """A model that asks the server."""
        raise NotImplementedError

    def asking(self, model: Any, name: str, record: Recording) -> Any:
        """The model asking for the record, with what it was asked then."""
        raise NotImplementedError

    def told(self, record: Recording, message: AIMessage) -> Any:
        """What a message says otherwise than the record; nothing where they agree."""
        raise NotImplementedError

    def named(self, exchange: Exchange) -> str:
        """The name of the recording that a request asks for."""
        return str(exchange.json["model"])

    # ------------------------------------------------------------------------------------------ asking

    @pytest.fixture
    def every(self, wire_folder: Path) -> Records:
        """The wire's recordings by id."""
        return {record.id: record for record in recordings(wire_folder, self.wire)}

    @pytest.fixture(params=["some", pytest.param("all", marks=pytest.mark.exhaustive)])
    def records(self, every: Records, request: pytest.FixtureRequest) -> Records:
        """One of each server and style, or all."""
        return every if request.param == "all" else dict(one_of_each(every.items(), lambda item: styles(item[1])))

    @pytest.fixture
    def serve(self, every: Records) -> Iterator[Serve]:
        """A function that gives a model whose server answers with recordings, cut into pieces in the named way."""
        ways: dict[str, str | Callable[[Recording], bytes]] = {}

        def answer(exchange: Exchange) -> Raw:
            record, way = every[self.named(exchange)], ways["now"]
            pieces = record.pieces(way) if isinstance(way, str) else [way(record)]
            return Raw(pieces, record.content_type or "application/json", record.status)

        with self.server(answer) as server:

            def model(way: str | Callable[[Recording], bytes]) -> Any:
                ways["now"] = way
                return self.model(server.url)

            yield model

    def invoked(self, model: Any, name: str, record: Recording) -> AIMessage:
        """The message that `invoke` gives."""
        return self.asking(model, name, record).invoke("x")  # type: ignore[no-any-return]

    def summed(self, model: Any, name: str, record: Recording) -> AIMessage:
        """The message that the chunks of `stream` sum to, as any user of LangChain makes it."""
        return message_chunk_to_message(reduce(add, self.asking(model, name, record).stream("x")))  # type: ignore[return-value]

    def wrong(self, records: Records, message_of: Callable[[str, Recording], AIMessage]) -> dict[str, Any]:
        """The records whose message differs, and how."""
        found: dict[str, Any] = {}
        for name, record in records.items():
            try:
                told = self.told(record, message_of(name, record))
            except Exception as error:
                told = repr(error)
            if told:
                found[record.id] = told
        return found

    # ------------------------------------------------------------------------------------------ tests

    def test_the_recordings_are_there(self, every: Records) -> None:
        """As many streams and whole bodies as there were at the least."""
        assert len(streamed(every)) >= self.least[0] and len(whole(every)) >= self.least[1]

    def test_streams_are_read_exactly(self, records: Records, serve: Serve) -> None:
        """A recorded stream gives all that it says."""
        model = serve("arrived")
        assert self.wrong(streamed(records), lambda name, record: self.summed(model, name, record)) == {}

    @pytest.mark.parametrize("cut", ["random", pytest.param("seven", marks=pytest.mark.exhaustive)])
    def test_streams_are_read_exactly_however_cut(self, records: Records, serve: Serve, cut: str) -> None:
        """So it does whatever the pieces are that its bytes come in."""
        model = serve(cut)
        assert self.wrong(streamed(records), lambda name, record: self.summed(model, name, record)) == {}

    @pytest.mark.exhaustive
    def test_streams_are_read_exactly_byte_by_byte(self, every: Records, serve: Serve) -> None:
        """So it does where each byte comes alone."""
        model = serve("one")
        assert self.wrong(streamed(every), lambda name, record: self.summed(model, name, record)) == {}

    async def test_streams_are_read_exactly_asynchronously(self, records: Records, serve: Serve) -> None:
        """The asynchronous stream reads the same."""
        model, messages = serve("random"), {}
        for name, record in streamed(records).items():
            chunks = [chunk async for chunk in self.asking(model, name, record).astream("x")]
            messages[name] = message_chunk_to_message(reduce(add, chunks))
        assert self.wrong(streamed(records), lambda name, record: messages[name]) == {}  # type: ignore[arg-type,return-value]

    def test_whole_bodies_are_read_exactly(self, records: Records, serve: Serve) -> None:
        """A recorded whole body gives all that it says through `invoke`."""
        model = serve("arrived")
        assert self.wrong(whole(records), lambda name, record: self.invoked(model, name, record)) == {}

    async def test_whole_bodies_are_read_exactly_asynchronously(self, records: Records, serve: Serve) -> None:
        """`ainvoke` reads the same."""
        model, chosen = serve("random"), whole(records)
        messages = {name: await self.asking(model, name, record).ainvoke("x") for name, record in chosen.items()}
        assert self.wrong(chosen, lambda name, record: messages[name]) == {}

    def test_whole_bodies_where_a_stream_was_asked(self, records: Records, serve: Serve) -> None:
        """A server that ignores `stream` and sends a whole body is understood all the same."""
        model = serve("arrived")
        assert self.wrong(whole(records), lambda name, record: self.summed(model, name, record)) == {}

    def test_what_a_vendor_adds_changes_nothing(self, records: Records, serve: Serve) -> None:
        """Keys that no vendor has yet, anywhere in a reply, streamed or whole."""
        model = serve(with_unknown_keys)
        assert self.wrong(streamed(records), lambda name, record: self.summed(model, name, record)) == {}
        assert self.wrong(whole(records), lambda name, record: self.invoked(model, name, record)) == {}

    def test_a_stream_that_breaks_off_runs_no_other_call(self, records: Records, serve: Serve) -> None:
        """Wherever a stream ends, what may run is what the whole of it would run; else there is an error of the vendor's or of ours."""
        model = serve(broken_off)
        for name, record in streamed(records).items():
            try:
                message = self.summed(model, name, record)
            except ModelError:
                continue
            wanted = [(call["name"], call["args"]) for call in record.expected["tool_calls"] if call["kind"] != "custom"]
            custom = {call["name"] for call in record.expected["tool_calls"] if call["kind"] == "custom"}
            assert [call for call in message.tool_calls if call["name"] not in custom and (call["name"], call["args"]) not in wanted] == []

    def test_strange_values_are_errors_that_say_so(self, records: Records, serve: Serve) -> None:
        """A reply with keys left out, or of another type, is read as far as it goes or is a `ModelError`, never a bare TypeError."""
        model = serve(with_strange_values)
        for chosen, read in ((streamed(records), self.summed), (whole(records), self.invoked)):
            for name, record in chosen.items():
                with suppress(ModelError):
                    read(model, name, record)

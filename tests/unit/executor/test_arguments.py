"""The arguments that rules are asked about, and those that a human may give: what the tool will get."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, StructuredTool
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, SecretStr, computed_field, field_validator
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import Field as FieldV1
from pydantic.v1 import SecretStr as SecretStrV1

from langchain_autotools import ConfigurationError, ToolCallRecord, ToolExecutor, new_messages, pending_calls
from langchain_autotools.testing import ScriptedChatModel
from tests.support.calls import call
from tests.support.desk import asking


class Aliased(BaseModel):
    """A payment."""

    amount: int = Field(0, alias="sum")


class Chosen(BaseModel):
    """A payment."""

    amount: int = Field(0, validation_alias=AliasChoices("sum", "total"))


class Deep(BaseModel):
    """A payment."""

    amount: int = Field(0, validation_alias=AliasPath("order", "sum"))


class ByName(BaseModel):
    """A payment."""

    model_config = ConfigDict(populate_by_name=True)
    amount: int = Field(0, alias="sum")


class Older(BaseModelV1):
    """A payment."""

    amount: int = FieldV1(0, alias="sum")


class OlderByName(BaseModelV1):
    """A payment."""

    amount: int = FieldV1(0, alias="sum")

    class Config:
        """It takes both."""

        allow_population_by_field_name = True


class Order(BaseModel):
    """An order."""

    amount: int = Field(0, alias="sum")


class Nested(BaseModel):
    """A payment."""

    order: Order | None = None
    orders: list[Order] = []
    named: dict[str, Order] = {}


class Open(Aliased):
    """A payment that takes anything else too."""

    model_config = ConfigDict(extra="allow")


def paying(schema: Any, **options: Any) -> tuple[list[dict[str, Any]], ToolExecutor]:
    """What a tool with this schema was given, and its executor."""
    given: list[dict[str, Any]] = []

    def pay(**arguments: Any) -> str:
        given.append(arguments)
        return "Paid."

    tool = StructuredTool(name="pay", description="Pay.", func=pay, args_schema=schema)
    return given, ToolExecutor([tool], **options)


def is_large(record: ToolCallRecord) -> bool:
    """The rule: more than 100."""
    assert record.args is not None
    assert json.loads(record.arguments) == record.args
    return bool(record.args["amount"] > 100)


WRITTEN = [
    pytest.param(Aliased, {"sum": 500}, id="alias"),
    pytest.param(Chosen, {"total": 500}, id="choices"),
    pytest.param(Deep, {"order": {"sum": 500}}, id="path"),
    pytest.param(ByName, {"amount": 500}, id="by name"),
    pytest.param(ByName, {"sum": 500, "amount": 500}, id="under both names"),
    pytest.param(Aliased, {"amount": 500}, id="as it is declared"),
    pytest.param(Aliased, {"sum": "500"}, id="text"),
    pytest.param(Older, {"sum": 500}, id="pydantic.v1"),
]


@pytest.mark.parametrize(("schema", "args"), WRITTEN)
def test_a_rule_on_arguments_is_not_passed_by_another_name(schema: Any, args: dict[str, Any]) -> None:
    """The rule sees what the tool would get; whoever decides, and the history, what the model wrote."""
    given, executor = paying(schema, requires_approval=is_large)
    answer = asking(call("pay", "1", **args))
    assert (executor.execute_all(answer), given) == ([], [])
    (pending,) = executor.pending_calls(answer)
    assert pending.args == args
    executor.execute_all(answer, decisions=[pending.approve()])
    assert given == [{"amount": 500}]


@pytest.mark.parametrize(("schema", "args"), WRITTEN)
def test_a_restriction_on_arguments_is_not_passed_by_another_name(schema: Any, args: dict[str, Any]) -> None:
    """`only=` is asked about the same."""
    given, executor = paying(schema)
    (result,) = executor.execute_all(asking(call("pay", "1", **args)), only=lambda record: not is_large(record))
    assert (result.status, given) == ("error", [])
    bundle = call("parallel", "1", tool_uses=[{"recipient_name": "pay", "parameters": args}])
    assert (executor.execute_all([bundle], only=lambda record: not is_large(record))[0].status, given) == ("error", [])


@pytest.mark.parametrize("own", [False, True])
def test_a_run_asks_its_rule_about_what_the_tool_will_get(own: bool) -> None:
    """In a run, when it is resumed, and inside a bundle; the stored call is what the model wrote."""
    given, executor = paying(Aliased, requires_approval=is_large if own else None)
    bundle = {"tool_uses": [{"recipient_name": "functions.pay", "parameters": {"sum": 700}}]}
    answer = asking(call("pay", "1", sum=500), call("pay", "2", sum=7), call("multi_tool_use.parallel", "3", **bundle))
    model = ScriptedChatModel(tools=executor, replies=[answer, "Done."], requires_approval=None if own else is_large)
    question = HumanMessage("Pay.")
    history = [question, *new_messages(model.invoke([question]))]
    assert [one.args for one in pending_calls(history)] == [{"sum": 500}, bundle]
    with pytest.raises(ConfigurationError, match="needs approval"):
        model.resume([question, answer], True)
    model.resume(history, [one.approve() for one in pending_calls(history)])
    assert sorted(one["amount"] for one in given) == [7, 500, 700]


class Kind(Enum):
    """Kinds of payment."""

    GIFT = "a gift"


class Rich(BaseModel):
    """A payment."""

    kind: Kind = Kind.GIFT
    pin: SecretStr = SecretStr("1234")
    tags: list[str] = Field(default_factory=lambda: ["new"])
    amount: int
    order: Order = Order(sum=3)
    call_id: Annotated[str, InjectedToolCallId] = ""
    user: Annotated[str, InjectedToolArg]

    @field_validator("amount")
    @classmethod
    def in_cents(cls, amount: int) -> int:
        """The amount in cents."""
        return amount * 100

    @computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        """Never given to the tool."""
        return self.amount * 2


class OlderRich(BaseModelV1):
    """A payment."""

    kind: Kind = Kind.GIFT
    pin: SecretStrV1 = SecretStrV1("1234")
    tags: list[str] = FieldV1(default_factory=lambda: ["new"])
    amount: int


class Schemaless(BaseTool):
    """A tool whose schema LangChain makes of its function, and does not enforce."""

    name: str = "pay"
    description: str = "Pay."

    def _run(self, to: str, amount: int = 5, user: Annotated[str, InjectedToolArg] = "nobody") -> str:
        return f"{to} {amount}"


def asked_about(executor: ToolExecutor, **args: Any) -> list[ToolCallRecord]:
    """What a rule is asked about, of one call."""
    asked: list[ToolCallRecord] = []

    def rule(record: ToolCallRecord) -> bool:
        asked.append(record)
        return True

    ruled = ToolExecutor(list(executor.tools.values()), requires_approval=rule)
    assert [one.args for one in ruled.pending_calls([call("pay", "1", **args)])] == [args]
    return asked


def test_a_rule_sees_plain_data_with_defaults_and_without_what_is_injected() -> None:
    """Enums as their values, secrets as stars, what validators make of a value; nothing that the model wrote for injected arguments."""
    (record,) = asked_about(paying(Rich)[1], amount="5", pin="4711", user="root", call_id="x", order={"sum": 8, "more": 1})
    plain = {"kind": "a gift", "pin": "**********", "tags": ["new"], "amount": 500, "order": {"amount": 8}}
    assert record.args == json.loads(record.arguments) == plain
    assert "4711" not in repr(record)
    (record,) = asked_about(paying(OlderRich)[1], amount="5", pin="4711")
    assert record.args == {"kind": "a gift", "pin": "**********", "tags": ["new"], "amount": 5}
    assert "4711" not in repr(record)


def test_a_tool_without_a_class_for_its_arguments_gets_them_as_they_are_written() -> None:
    """So the rule sees them so: of a JSON schema, and of a schema that nobody enforces, with the function's defaults."""
    schema = {"type": "object", "properties": {"amount": {"type": "integer", "default": 5}}, "required": ["amount"]}
    assert asked_about(paying(schema)[1], amount="many", to="Anna")[0].args == {"amount": "many", "to": "Anna"}
    assert asked_about(ToolExecutor([Schemaless()]), to="Anna", user="root")[0].args == {"to": "Anna", "amount": 5}
    assert asked_about(ToolExecutor([Schemaless()]), to="Anna", amount="7")[0].args == {"to": "Anna", "amount": "7"}
    assert asked_about(ToolExecutor([Schemaless()]), amount=7)[0].args == {"amount": 7}


@pytest.mark.parametrize("options", [{"requires_approval": is_large}, {"requires_approval": ["pay"]}, {"requires_approval": True}, {}])
def test_nobody_is_asked_about_arguments_that_are_not_valid(options: dict[str, Any]) -> None:
    """The call is answered as it is without a rule, at once, and with no secret in it."""

    def never(_: Any) -> Any:
        raise AssertionError

    calls = [call("pay", "1", amount="many", pin="4711"), call("pay", "2", pin=["4711"])]
    plain = [result.content for result in paying(Rich)[1].execute_all(calls)]
    given, executor = paying(Rich, **options, approve=never)
    results = executor.execute_all(calls)
    assert [result.content for result in results] == plain
    assert [result.status for result in results] == ["error"] * 2
    assert executor.pending_calls(calls) == given == []
    assert "4711" not in repr(results) + repr([result.error for result in executor.stream(calls)])
    uses = [{"recipient_name": "pay", "parameters": one["args"]} for one in calls]
    (bundle,) = executor.execute_all([call("parallel", "1", tool_uses=uses)])
    assert [json.loads(one["result"]) for one in json.loads(str(bundle.content))] == [json.loads(str(text)) for text in plain]


def test_a_run_answers_arguments_that_are_not_valid() -> None:
    """And goes on; so does one that is resumed."""
    given, executor = paying(Aliased, requires_approval=is_large)
    answer = asking(call("pay", "1", sum="many"), call("pay", "2", sum=7))
    model = ScriptedChatModel(tools=executor, replies=[answer, "Done.", "Done."])
    question = HumanMessage("Pay.")
    first, again = model.invoke([question]), model.resume([question, AIMessage("", tool_calls=answer.tool_calls)], True)
    assert [message.text[:14] for message in new_messages(first)[1:]] == ['{"error": "The', "Paid.", "Done."]
    assert [message.text[:14] for message in new_messages(again)] == ['{"error": "The', "Paid.", "Done."]
    assert given == [{"amount": 7}] * 2


def test_arguments_that_no_rule_could_read_end_everything() -> None:
    """Nothing runs."""

    class Raw(BaseModel):
        data: bytes = b"\xff"

    given, executor = paying(Raw, requires_approval=lambda record: False)
    with pytest.raises(ConfigurationError, match="cannot be written as plain data"):
        executor.execute_all([call("pay", "1")])
    assert given == []


# ---------------------------------------------------------------------------------------------- edits


@pytest.mark.parametrize(
    ("schema", "args", "text"),
    [
        (Aliased, {"amount": 50, "sum": 51}, "'sum' and 'amount' are one argument, and have different values"),
        (Chosen, {"total": 50, "sum": 51}, "'total' and 'amount' are one argument, and have different values"),
        (Deep, {"amount": 50, "order": {"sum": 51}}, "'order' and 'amount' are one argument"),
        (Older, {"amount": 50, "sum": 51}, "'sum' and 'amount' are one argument"),
        (Nested, {"order": {"amount": 50}}, "'amount' is taken under the name 'sum' only"),
        (Nested, {"orders": [{"sum": 1}, {"amount": 50}]}, "'amount' is taken under the name 'sum' only"),
        (Nested, {"named": {"a": {"amount": 50}}}, "'amount' is taken under the name 'sum' only"),
        (Aliased, {"total": 50}, "'total' is no argument of the tool"),
        (Rich, {"amount": 1, "user": "root"}, "'user' is no argument of the tool"),
        (Aliased, {"sum": "many"}, "not valid: amount"),
    ],
)
def test_an_edit_that_the_tool_would_not_get_is_refused(schema: Any, args: dict[str, Any], text: str) -> None:
    """The model would be told that the tool ran with it."""
    given, executor = paying(schema, requires_approval=True)
    answer = asking(call("pay", "1", **({"amount": 1} if schema is Rich else {})))
    (pending,) = executor.pending_calls(answer)
    with pytest.raises(ConfigurationError, match=text):
        executor.execute_all(answer, decisions=[pending.edit(args)])
    model = ScriptedChatModel(tools=executor, replies=[answer, "Done."])
    history = [HumanMessage("Pay."), *new_messages(model.invoke("Pay."))]
    with pytest.raises(ConfigurationError, match=text):
        model.resume(history, [one.edit(args) for one in pending_calls(history)])
    assert given == []


@pytest.mark.parametrize(
    ("schema", "args"),
    [
        (Aliased, {"sum": 50}),
        (Aliased, {"amount": 50}),
        (Aliased, {"amount": 50, "sum": 50}),
        (Open, {"sum": 50}),
        (Open, {"amount": 50}),
        (Chosen, {"amount": 50}),
        (Deep, {"amount": 50}),
        (Older, {"amount": 50}),
        (Chosen, {"total": 50}),
        (Deep, {"order": {"sum": 50}}),
        (ByName, {"sum": 50}),
        (ByName, {"amount": 50}),
        (Older, {"sum": 50}),
        (OlderByName, {"amount": 50}),
    ],
)
def test_an_edit_runs_under_the_declared_name_and_under_an_alias(schema: Any, args: dict[str, Any]) -> None:
    """Whatever the schema itself takes: the model is told of the field's name."""
    given, executor = paying(schema, requires_approval=True)
    answer = asking(call("pay", "1"))
    (result,) = executor.execute_all(answer, decisions=[one.edit(args) for one in executor.pending_calls(answer)])
    assert given == [{"amount": 50}]
    assert json.dumps(args) in result.text


@pytest.mark.parametrize("rule", [lambda record: record.args["amount"] > 2**53, True])
def test_large_integers_are_judged_and_kept_digit_by_digit(rule: Callable[[ToolCallRecord], bool] | bool) -> None:
    """A decision about 2**53 + 1 is none about its neighbour, which a double cannot tell apart."""
    given, executor = paying(Aliased, requires_approval=rule)
    shown, changed = (asking(call("pay", "1", sum=2**53 + number)) for number in (1, 2))
    (pending,) = executor.pending_calls(shown)
    with pytest.raises(ConfigurationError, match="about another call"):
        executor.execute_all(changed, decisions=[pending.approve()])
    executor.execute_all(shown, decisions=[pending.approve()])
    assert given == [{"amount": 2**53 + 1}]

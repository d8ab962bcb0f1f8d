"""What a program that was written for the partner's class can name: attributes, constructor arguments, methods and their arguments.

What ours has besides is no difference.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import AliasChoices, SecretStr
from pydantic.fields import FieldInfo

from tests.surface.observed import ABSENT, Seen, flat, plain
from tests.surface.pairs import THEIRS, Stage
from tests.surface.replied import QUESTION, outcome

_PLACES = ("api_base", "api_key", "api_version", "azure_deployment", "azure_endpoint", "base_url", "endpoint", "model", "model_name")
"""Arguments that say where a request goes: they are not tried out on the server of the pair."""
_REQUIRED = "required"


def names(stage: Stage) -> Iterator[tuple[str, str, Seen]]:
    """Each public name that the partner's class has: its kind, and a method's arguments."""
    theirs, cls = stage.pair.class_of(THEIRS), stage.pair.class_of(stage.side)
    for name in sorted(name for name in {*dir(theirs), *theirs.model_fields} if not name.startswith("_")):
        if name in theirs.model_fields:
            yield name, "", {"kind": "value" if name in cls.model_fields or hasattr(cls, name) else ABSENT}
            continue
        shown = inspect.getattr_static(cls, name, None)
        yield name, "", {"kind": _kind(shown), **_arguments(cls, theirs, name)}


def _kind(shown: Any) -> str:
    """What a program can do with it."""
    if shown is None:
        return ABSENT
    if isinstance(shown, classmethod | staticmethod):
        return "method of the class"
    if inspect.iscoroutinefunction(shown) or inspect.isasyncgenfunction(shown):
        return "asynchronous method"
    return "method" if callable(shown) else "value"


def _arguments(cls: Any, theirs: Any, name: str) -> Seen:
    """The arguments of theirs that a method has, how each may be given, and its default."""
    wanted, shown = _parameters(theirs, name), _parameters(cls, name)
    takes_any = any(one.kind is one.VAR_KEYWORD for one in shown.values())
    seen = {}
    for argument, of_theirs in wanted.items():
        one = shown.get(argument, of_theirs if takes_any else None)
        if one is not None and of_theirs.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL):
            by_place = "by place" if one.kind is one.POSITIONAL_OR_KEYWORD else "by name"
            seen[argument] = f"{by_place}, {_REQUIRED if one.default is one.empty else plain(one.default)}"
    return seen


def _parameters(cls: Any, name: str) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(getattr(cls, name)).parameters
    except (AttributeError, TypeError, ValueError):  # no method, or one of C
        return {}


# ---------------------------------------------------------------------------------------------- constructor arguments


def arguments(stage: Stage) -> Iterator[tuple[str, str, Seen]]:
    """Each argument of the partner's constructor under each name: whether it is taken, what the attribute says then and what is sent."""
    fields = stage.pair.class_of(THEIRS).model_fields
    default = stage.pair.make(stage.side)
    before = stage.sent(lambda: stage.make().invoke(QUESTION)) if stage.pair.wire else {}
    for name, info in sorted(fields.items()):
        if hasattr(default, name) or stage.side == THEIRS:  # that ours lacks it is told of its name
            yield name, "default", {"value": plain(getattr(default, name, ABSENT))}
        value = sample(name, info)
        if value is ABSENT or name in ("model", "model_name"):  # given already
            continue
        for given in _spellings(name, info):
            seen = outcome(lambda: _tried(stage, name, {given: value}, before), lambda seen: seen)  # noqa: B023 - called at once
            yield name, given, {"raises": "an error"} if "raises" in seen else seen


def _tried(stage: Stage, name: str, given: Mapping[str, Any], before: Mapping[str, Any]) -> Seen:
    """What comes of giving an argument."""
    seen = {"value": plain(getattr(stage.pair.make(stage.side, **given), name, ABSENT))}
    if stage.pair.wire and not {*given, name} & {*_PLACES} and not name.endswith(_PLACES):
        body = stage.sent(lambda: stage.make(**given).invoke(QUESTION))
        usual, sent = flat(before), flat(body)
        changed = {key for key in {*usual, *sent} if usual.get(key) != sent.get(key)}
        seen["sent"] = " ".join(f"{key}={sent.get(key, ABSENT)}" for key in sorted(changed)) or "nothing"
    return seen


def _spellings(name: str, info: FieldInfo) -> list[str]:
    """The names under which an argument may be given."""
    other = info.validation_alias
    aliases = [one for one in other.choices if isinstance(one, str)] if isinstance(other, AliasChoices) else [other]
    return list(dict.fromkeys(one for one in (name, info.alias, *aliases) if isinstance(one, str)))


_SAMPLES: Mapping[str, Any] = {
    "cache": False,
    "callbacks": ABSENT,
    "custom_get_token_ids": ABSENT,
    "effort": "low",
    "extra_body": {"own": 1},
    "include": ["reasoning.encrypted_content"],
    "keep_alive": "5m",
    "metadata": {"a": "b"},
    "n": 1,
    "output_version": "v1",
    "rate_limiter": ABSENT,
    "reasoning": {"effort": "low"},
    "reasoning_effort": "low",
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "timeout": 7.0,
    "verbosity": "low",
    "service_tier": "auto",
    "truncation": "auto",
}
"""Values that the argument's type does not tell."""


def sample(name: str, info: FieldInfo) -> Any:
    """A value that the argument may have, another one than its default; `ABSENT` where none can be made up."""
    if name.endswith(("_base", "_url", "_proxy", "endpoint")):
        return "http://127.0.0.1:9/v1"
    value = _SAMPLES.get(name) if name in _SAMPLES else _of_type(info.annotation)
    return (not value) if isinstance(value, bool) and value == info.default else value


def _of_type(kind: Any) -> Any:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return inner[0]
    if origin in (typing.Union, types.UnionType):
        return next((value for one in inner if one is not type(None) and (value := _of_type(one)) is not ABSENT), ABSENT)
    if origin is typing.Annotated:
        return _of_type(inner[0])
    if origin in (list, typing.Sequence) or kind is list:
        value = _of_type(inner[0]) if inner else "x"
        return ABSENT if value is ABSENT else [value]
    if origin in (dict, typing.Mapping) or kind is dict:
        return {"x": 1} if not inner or inner[-1] is not str else {"x": "y"}
    return _SIMPLE.get(kind, ABSENT) if isinstance(kind, type) else ABSENT


_SIMPLE: Mapping[Any, Any] = {bool: True, int: 3, float: 0.5, str: "x", SecretStr: "secret"}

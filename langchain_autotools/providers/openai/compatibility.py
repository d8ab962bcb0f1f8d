"""What OpenAI's models, or the servers of others, take: by which API, in which form, with which profile.

Wire facts: some models are served by Responses alone ("This model is only supported in v1/responses and not in v1/chat/completions"),
and from gpt-5.4 on chat completions refuses function tools to a model that reasons, as these do unless told otherwise ("Function tools
with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions", openai/openai-openapi#541; langchain-ai/langchain#40346).
langchain-openai goes to Responses for these, for builtin tools, and for parameters that only this API has.
"""

import re
import threading
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from pydantic import SecretStr

from .._base.chat_model import described, profile, profile_in
from .._base.errors import is_quoted, read_refusal, refused_status
from .._encode.encoder import origin_of
from .._transport.clients import Shared
from .._transport.secrets import digest
from .dialect import OPAQUE_KEYS, OPENAI, Dialect
from .mapper import ChatCompletionsMapper
from .parameters import RESPONSES_NAMES, OpenAIParameters

_ASKING = (*RESPONSES_NAMES, "previous_response_id", "text")
_NAMED = {True: re.compile(r"\bv1/responses\b"), False: re.compile(r"\bv1/chat/completions\b")}
_REFUSALS = (400, 404, 405, 422)


class Route(NamedTuple):
    """The data that a request's route depends on.

    Attributes:
        why: The reason for using the Responses API, for an error's text; "" for chat completions.
        firm: Whether the caller chose, so that no server's word changes it.
        key: The common data of requests that a server rejects alike: endpoint, model, tools or none, effort.
    """

    why: str
    firm: bool
    key: tuple[str, bool, str]


def route_of(model: OpenAIParameters, kwargs: Mapping[str, Any]) -> Route:
    """Return the route of a request with these keywords, before any rejection. It is the same for every turn of a run.

    Args:
        model: The model, for what its constructor set.
        kwargs: The call's keywords, `tools` among them.
    """
    params = {**{name: getattr(model, name) for name in (*RESPONSES_NAMES, "reasoning_effort")}, **model.model_kwargs, **kwargs}
    tools = params.get("tools") or ()
    name, effort = str(kwargs.get("model") or kwargs.get("model_name") or model._known_name), str(params.get("reasoning_effort") or "")
    key = (origin_of(model._endpoint, name), bool(tools), effort)
    arguments = [f"{argument}=..." for argument in _ASKING if params.get(argument) is not None]
    if model.use_previous_response_id:
        arguments.append("use_previous_response_id=True")
    if model.use_responses_api is not None:
        return Route((arguments or ["use_responses_api=True"])[0] if model.use_responses_api else "", True, key)
    builtin = [f"the tool of type {tool['type']!r}" for tool in tools if _is_builtin(tool, custom=model._is_vendors)]
    if arguments or builtin:
        return Route((arguments or builtin)[0], True, key)
    return Route(_of_name(name, effort, bool(tools)) if model._is_vendors else "", False, key)


def _is_builtin(tool: Any, *, custom: bool) -> bool:
    """Whether a declared tool exists only in Responses; chat completions, at any server, nest a tool under its type."""
    kind = tool.get("type") if isinstance(tool, Mapping) else None
    if not isinstance(kind, str) or kind == "function" or "function" in tool:
        return False
    return custom if kind == "custom" else not isinstance(tool.get(kind), Mapping)


def _of_name(name: str, effort: str, tools: bool) -> str:
    """Return the reason why a model's name selects Responses at the vendor's own address; "" if it does not."""
    if refuses_chat_completions(name):
        return f"the model {name!r}"
    return f"the model {name!r} with tools" if tools and refuses_tools_on_chat_completions(name, effort) else ""


class LearnedRoutes(Shared):
    """Routes learned from servers' rejections. Safe for threads."""

    def __init__(self) -> None:
        self._learned: dict[tuple[str, bool, str], str] = {}

    def why(self, route: Route) -> str:
        """Return the reason for sending the request to the Responses API; "" for chat completions."""
        return route.why if route.firm else self._learned.get(route.key, route.why)

    def obeys(self, route: Route, used: str, error: Any, body: bytes) -> bool:
        """Whether to follow a rejection that names the other API, from now on. A server that redirects back is not followed.

        Args:
            route: The request's route.
            used: The value of `why` when the rejected request was made.
            error: The SDK's error.
            body: The JSON of the refused request.
        """
        to_responses = not used
        found = None if getattr(error, "status_code", None) not in _REFUSALS else _NAMED[to_responses].search(f"{error} {error.body}")
        if route.firm or found is None or is_quoted(found[0], body):
            return False
        learned = self._learned.setdefault(route.key, "the server, which refused it on chat completions" if to_responses else "")
        return bool(learned) is to_responses


# ---------------------------------------------------------------------------------------------- compatibility
# Forms of requests per endpoint and model, adapted to a server's rejections.
#
# Servers that speak chat completions differ in two things that no request can get right for all of them (wire quirks H-03, R-03): the
# content of an assistant message that has only calls (null or the empty string), and opaque state sent back with a history (demanded by
# some, refused by others). A refusal that names one of them changes the form, and the form is kept once a request in it was taken: for
# all models of the process that ask the same model at the same endpoint with the same key.


_PLACE_OF_CONTENT = re.compile(r"messages?\W{1,3}\d+\W{1,3}(?:\w+\W)?content\b", re.IGNORECASE)
_MOST = 1_000
_ABOUT_CONTENT = re.compile(r"\bcontent\b.{0,120}\b(null|none\w*|str|string|empty|required|missing)\b", re.IGNORECASE | re.DOTALL)


class CompatibilityKey(NamedTuple):
    """The values that determine the form of a request before any rejection."""

    origin: str
    null_content: bool
    part_keys: tuple[str, ...]
    dialect: Dialect = OPENAI
    account: str = ""
    """What distinguishes the API key: two accounts may be served by different servers."""


def account_of(key: Any) -> str:
    """Return what distinguishes an API key, or the function that gives it, without revealing it."""
    return digest(key.get_secret_value()) if isinstance(key, SecretStr) else str(id(key))


class LearnedCompatibility:
    """The mappers in use, each of which writes one form, of the last thousand keys. Safe for threads."""

    def __init__(self) -> None:
        self._learned: dict[CompatibilityKey, ChatCompletionsMapper] = {}
        self._turns: dict[tuple[CompatibilityKey, str], list[bool]] = {}
        self._lock = threading.Lock()

    def get(self, key: CompatibilityKey) -> ChatCompletionsMapper:
        """Return the mapper for a key."""
        mapper = self._learned.get(key)
        return mapper if mapper is not None else self._add(key)

    def _add(self, key: CompatibilityKey) -> ChatCompletionsMapper:
        with self._lock:
            if len(self._learned) >= _MOST:
                oldest = next(iter(self._learned))
                del self._learned[oldest]
                self._turns = {place: turns for place, turns in self._turns.items() if place[0] != oldest}
            return self._learned.setdefault(key, _mapper(key))

    def keep(self, key: CompatibilityKey, mapper: ChatCompletionsMapper) -> None:
        """Use this mapper for requests from now on.

        Args:
            key: The request's key.
            mapper: The mapper that the server took a request of.
        """
        self._learned[key] = mapper

    def other(
        self, key: CompatibilityKey, tried: Collection[ChatCompletionsMapper], error: Any, body: bytes
    ) -> ChatCompletionsMapper | None:
        """Return the mapper to try after a rejection; None if the form is not the reason or all forms have been tried.

        Args:
            key: The request's key.
            tried: The mappers whose requests were refused, the last one last.
            error: The SDK's error.
            body: The JSON of the refused request.
        """
        *_, used = tried
        found = read_refusal(error, OPAQUE_KEYS, body)
        about_content = found is None and used.null_content == key.null_content and _is_about_content(error, body)
        if found is None and not about_content:
            return None
        current = self.get(key)
        if current not in tried:
            return current  # another request has learned meanwhile
        if found is None:
            return used.variant(null_content=not key.null_content)
        name = frozenset({found.key})
        if name <= (used.demand if found.missed else used.omit) or not self._may_turn(key, *found):
            return None
        omit, demand = (used.omit - name, used.demand | name) if found.missed else (used.omit | name, used.demand - name)
        return used.variant(omit=omit, demand=demand)

    def _may_turn(self, key: CompatibilityKey, name: str, missed: bool) -> bool:
        """Whether a rule may take a direction: it changes it once. Behind one name may stand servers that want the opposite."""
        with self._lock:
            turns = self._turns.setdefault((key, name), [])
            if turns[-1:] != [missed]:
                turns.append(missed)
            if len(turns) > 2:
                turns.pop()
                return False
            return True


LEARNED: Final = LearnedCompatibility()
"""What this process has learnt."""


def _mapper(key: CompatibilityKey) -> ChatCompletionsMapper:
    return ChatCompletionsMapper(origin=key.origin, null_content=key.null_content, part_keys=key.part_keys, dialect=key.dialect)


def _is_about_content(error: Any, body: bytes) -> bool:
    """Whether a refusal is about the content of a message, by its place, or by a word that the request itself does not hold."""
    if refused_status(error) not in (400, 422):
        return False
    text = f"{error} {error.body}"
    if not _ABOUT_CONTENT.search(text):
        return False
    return bool(_PLACE_OF_CONTENT.search(text)) or not is_quoted("content", body)


# ---------------------------------------------------------------------------------------------- profiles
#
# Profiles of OpenAI's chat models, for `model.profile`.
#
# The numbers are those that models.dev (MIT) published in November 2026. Only models that converse in text are listed; of any other,
# a compatible server's among them, nothing is claimed, and `profile={...}` says what the user knows. The efforts of the `-codex` and
# `-pro` models, and that they take no temperature, are as OpenAI's own pages of these models have it.

_LOW_TO_HIGH = ("low", "medium", "high")
_FROM_MINIMAL = ("minimal", *_LOW_TO_HIGH)
_FROM_NONE = ("none", *_LOW_TO_HIGH)
_UP_TO_EXTRA = (*_FROM_NONE, "xhigh")
_LOW_TO_EXTRA = (*_LOW_TO_HIGH, "xhigh")
_FROM_MEDIUM = ("medium", "high", "xhigh")
_UP_TO_MAXIMUM = (*_UP_TO_EXTRA, "max")

_seeing = partial(profile, images=True, pdfs=True)
_reasoning = partial(_seeing, reasoning=True, temperature=False)
_CARDS = """
gpt-3.5-turbo | GPT-3.5-turbo | 2023-03-01 2023-11-06 | deprecated
gpt-4 | GPT-4 | 2023-11-06 2024-04-09 | deprecated
gpt-4-turbo | GPT-4 Turbo | 2023-11-06 2024-04-09 | deprecated
gpt-4o | GPT-4o | 2024-05-13 2024-08-06
gpt-4o-mini | GPT-4o mini | 2024-07-18
gpt-4o-2024-05-13 | GPT-4o (2024-05-13) | 2024-05-13 | deprecated
gpt-4.1 | GPT-4.1 | 2025-04-14
gpt-4.1-mini | GPT-4.1 mini | 2025-04-14
gpt-4.1-nano | GPT-4.1 nano | 2025-04-14 | deprecated
o1 | o1 | 2024-12-05 | deprecated
o1-pro | o1-pro | 2025-03-19 | deprecated
o3 | o3 | 2025-04-16
o3-pro | o3-pro | 2025-06-10
o4-mini | o4-mini | 2025-04-16 | deprecated
o3-mini | o3-mini | 2024-12-20 2025-01-29 | deprecated
gpt-5 | GPT-5 | 2025-08-07
gpt-5-mini | GPT-5 Mini | 2025-08-07
gpt-5-nano | GPT-5 Nano | 2025-08-07
gpt-5-pro | GPT-5 Pro | 2025-10-06
gpt-5.1 | GPT-5.1 | 2025-11-13
gpt-5.2 | GPT-5.2 | 2025-12-11
gpt-5.2-pro | GPT-5.2 Pro | 2025-12-11
gpt-5.3-codex | GPT-5.3 Codex | 2026-02-05
gpt-5.3-codex-spark | GPT-5.3 Codex Spark | 2026-02-05
gpt-5.4 | GPT-5.4 | 2026-03-05
gpt-5.4-mini | GPT-5.4 mini | 2026-03-17
gpt-5.4-nano | GPT-5.4 nano | 2026-03-17
gpt-5.4-pro | GPT-5.4 Pro | 2026-03-05
gpt-5.5-pro | GPT-5.5 Pro | 2026-04-23
gpt-5.5 | GPT-5.5 | 2026-04-23
gpt-5.6 | GPT-5.6 | 2026-07-09
gpt-5.6-luna | GPT-5.6 Luna | 2026-07-09
gpt-5.6-sol | GPT-5.6 Sol | 2026-07-09
gpt-5.6-terra | GPT-5.6 Terra | 2026-07-09
gpt-6-luna | GPT-6 Luna | 2026-09-22
gpt-6-sol | GPT-6 Sol | 2026-09-22
gpt-6-astra | GPT-6 Astra | 2026-09-04
gpt-6.1-sol | GPT-6.1 Sol | 2026-09-29
gpt-6.1-terra | GPT-6.1 Terra | 2026-10-26
"""
PROFILES = described(
    {
        "gpt-3.5-turbo gpt-3.5-turbo-0125 gpt-3.5-turbo-1106 gpt-3.5-turbo-16k": profile(16_385, 4_096, structured=False),
        "gpt-35-turbo gpt-35-turbo-16k": profile(16_385, 4_096, structured=False),
        "gpt-4 gpt-4-0613": profile(8_192, 8_192, structured=False),
        "gpt-4-turbo": _seeing(128_000, 4_096, structured=False),
        "gpt-4-turbo-preview gpt-4-0125-preview gpt-4-1106-preview": profile(128_000, 4_096, structured=False),
        "gpt-4o gpt-4o-mini": _seeing(128_000, 16_384),
        "gpt-4o-2024-05-13": _seeing(128_000, 4_096, structured=False),
        "gpt-4.1 gpt-4.1-mini gpt-4.1-nano": _seeing(1_047_576, 32_768),
        "o1 o1-pro o3 o3-pro o4-mini": _reasoning(200_000, 100_000, efforts=_LOW_TO_HIGH),
        "o3-mini": _reasoning(200_000, 100_000, efforts=_LOW_TO_HIGH, images=False, pdfs=False),
        "gpt-5 gpt-5-mini gpt-5-nano": _reasoning(272_000, 128_000, efforts=_FROM_MINIMAL),
        "gpt-5-pro": _reasoning(272_000, 272_000, efforts=("high",)),
        "gpt-5-codex gpt-5.1-codex gpt-5.1-codex-mini": _reasoning(272_000, 128_000, efforts=_LOW_TO_HIGH),
        "gpt-5.1-codex-max gpt-5.2-codex": _reasoning(272_000, 128_000, efforts=_LOW_TO_EXTRA),
        "gpt-5.1": _reasoning(272_000, 128_000, efforts=_FROM_NONE, temperature=True),
        "gpt-5.2": _reasoning(272_000, 128_000, efforts=_UP_TO_EXTRA, temperature=True),
        "gpt-5.2-pro": _reasoning(272_000, 128_000, efforts=_FROM_MEDIUM, structured=False),
        "gpt-5.3-codex": _reasoning(400_000, 128_000, efforts=_LOW_TO_EXTRA),
        "gpt-5.3-codex-spark": _reasoning(128_000, 32_000, efforts=_LOW_TO_EXTRA),
        "gpt-5.4": _reasoning(1_050_000, 128_000, efforts=_UP_TO_EXTRA, temperature=True),
        "gpt-5.4-mini gpt-5.4-nano": _reasoning(400_000, 128_000, efforts=_UP_TO_EXTRA, temperature=True),
        "gpt-5.4-pro": _reasoning(1_050_000, 128_000, efforts=_FROM_MEDIUM, structured=False),
        "gpt-5.5-pro": _reasoning(1_050_000, 128_000, efforts=_FROM_MEDIUM, default_effort="medium"),
        "gpt-5.5": _reasoning(1_050_000, 128_000, efforts=_UP_TO_EXTRA, default_effort="medium"),
        "gpt-5.6 gpt-5.6-luna gpt-5.6-sol gpt-5.6-terra": _reasoning(1_050_000, 128_000, efforts=_UP_TO_MAXIMUM, default_effort="medium"),
        "gpt-6-luna gpt-6-sol": _reasoning(1_050_000, 128_000, efforts=_UP_TO_MAXIMUM, default_effort="medium"),
        "gpt-6-astra": _reasoning(1_050_000, 128_000, efforts=(*_LOW_TO_EXTRA, "max")),
        "gpt-6.1-sol gpt-6.1-terra": _reasoning(1_050_000, 128_000, efforts=_LOW_TO_HIGH),
    },
    _CARDS,
)
_CHANGED_MIDWAY = {"mid_conversation_system_messages": True, "mid_conversation_tools": True}
_CHANGES_MIDWAY = re.compile(r"gpt-4\.1|gpt-5|gpt-6(?!\.1-terra)|o3")
_DATE = re.compile(r"-\d{4}-\d{2}-\d{2}\Z")
_RESPONSES_ONLY = re.compile(r"(gpt-\d(\.\d+)?|o\d)-pro\b|gpt-5\.6-sol\b|computer-use\b|.*(codex|-deep-research)\b")
_VERSION = re.compile(r"gpt-(\d)(?:\.(\d+))?(?![\d.])")  # gpt-35-turbo is Azure's name of a 3.5
_FIRST_TO_REFUSE_TOOLS = (5, 4)
_FIRST_TO_REASON_ALWAYS = (6, 0)


def profile_of(model: str) -> dict[str, Any]:
    """Return the profile of a model at OpenAI's Responses API; empty if it is unknown. A dated version counts as its undated name."""
    known = profile_in(PROFILES, model, _DATE)
    return known | _CHANGED_MIDWAY if known and _CHANGES_MIDWAY.match(model.lower()) else known


def refuses_chat_completions(model: str) -> bool:
    """Whether OpenAI serves a model only, or preferably, by the Responses API."""
    return _RESPONSES_ONLY.match(_base(model)) is not None


def refuses_tools_on_chat_completions(model: str, effort: str) -> bool:
    """Whether OpenAI's chat completions reject function tools for a model.

    Args:
        model: The model's name.
        effort: The reasoning effort that is asked for; "" leaves it to the vendor, who does not take `none`.
    """
    found = _VERSION.match(_base(model))
    version = (int(found[1]), int(found[2] or 0)) if found else (0, 0)
    return version >= (_FIRST_TO_REASON_ALWAYS if effort == "none" else _FIRST_TO_REFUSE_TOOLS)


def _base(model: str) -> str:
    """Return the base model of a fine-tuned one; other names unchanged."""
    return model.lower().removeprefix("ft:").partition(":")[0]

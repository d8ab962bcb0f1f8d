"""Why ours differs from the partner packages' classes, and where a page says so.

A pattern is looked for in `pair/section/case/way/path: theirs => ours`; the first that is found counts.
"""

from tests.partner.verdicts import STATED, Rule

BETTER = "better"
SAME = "same purpose"
AWAITED = "to be mended"
KINDS = (STATED, AWAITED, SAME, BETTER)

_ALL = "differences.md"
_OPENAI = "chat_openai.md"
_ANTHROPIC = "chat_anthropic.md"
_GOOGLE = "chat_google_generative_ai.md"


def _stated(why: str, pattern: str, page: str, says: str) -> Rule:
    return Rule(STATED, why, error=pattern, page=page, says=says)


def _better(why: str, pattern: str) -> Rule:
    return Rule(BETTER, why, error=pattern)


def _same(why: str, pattern: str) -> Rule:
    return Rule(SAME, why, error=pattern)


def _awaited(why: str, pattern: str) -> Rule:
    return Rule(AWAITED, why, error=pattern)


_NAMES = (
    _stated("the SDK's clients are no attributes", r"/name/((root_)?(async_)?client|a?close|http_socket_options)/", _ALL, "The SDK's clients are no fields"),
    _stated(
        "validators and helpers of the partner's class are not there",
        r"/name/(build_\w+|validate_\w+|set_default_max_tokens|completion_with_retry)/",
        _ALL,
        "helpers",
    ),
    _same("what pydantic calls has other names of arguments", r"/name/model_post_init/"),
    _same("`abatch_as_completed` gives an asynchronous iterator", r"/name/abatch_as_completed/"),
    _same("`with_structured_output` chooses its method when it is called", r"/name/with_structured_output/"),
)

_FACTS = (
    _stated("LangChain's loader does not admit classes that it does not list", r"/fact/(is_lc_serializable|dumps|get_lc_namespace|lc_id|lc_attributes|lc_secrets)/|/serialized: ", _ALL, "`is_lc_serializable` is false"),
    _stated("tokens are estimated offline", r"/fact/(get_num_tokens|get_token_ids)", _OPENAI, "tokens are counted by an estimate"),
    _same("what `bind`, `bind_tools` and `with_config` give is a model that runs tools", r"/fact/(bind|bind_tools|with_config)/"),
    _better("models can be pickled; the key stays behind", r"/fact/pickle/|/way/text/pickled/"),
)

_REPLIES = (
    _stated("arguments that do not parse stay unparsable", r"/reply/(broken|cut) call/", _ALL, "Arguments that do not parse stay unparsable"),
    _stated("the message has the vendor's id, or a run's where that is short", r"/(reply|way|cache)/.*/id: ", _ALL, "Short ids of replies"),
    _stated("a filtered reply is a turn", r"azure/reply/filtered/.*raises", "azure_chat_openai.md", "a reply that was filtered is a turn"),
    _better("a call without arguments is a call", r"/reply/call without arguments/.*(invalid_tool_call|tool_calls|: nothing)"),
    _better("a call of a custom tool is a call", r"/reply/custom call/.*(raises|non_standard|tool_call)"),
    _better("more of the reply is kept in `response_metadata`", r"/reply/.*/response_metadata\.[\w.-]+: - => "),
    _better("more of the reply is kept in `additional_kwargs`", r"/reply/.*/additional_kwargs[\w.-]*: - => "),
    _awaited("`content_blocks` of the Responses API lacks reasoning and refusals", r"-responses/reply/(thinking|refusal|two summaries).*content(_blocks)?[\w.]*: "),
    _stated("text is a string, or v1 blocks", r"-responses/reply/.*/content: ", _OPENAI, "text is a string, or v1 blocks"),
)

RULES = (*_NAMES, *_FACTS, *_REPLIES)

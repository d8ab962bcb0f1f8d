"""Why ours differs from the partner packages' classes, and where a page says so.

A pattern is looked for in `pair/section/case/way/path: theirs => ours`; the first that is found counts.
"""

from tests.partner.verdicts import STATED, Rule

BETTER = "better"
SAME = "same purpose"
KINDS = (STATED, SAME, BETTER)

_ALL = "differences.md"
_OPENAI = "chat_openai.md"
_ANTHROPIC = "chat_anthropic.md"
_ON_OPENAI = r"^(azure|deepseek|fireworks|groq|mistralai|openai|openrouter|together|xai)[\w-]*"
_GOOGLE = "chat_google_generative_ai.md"


def _stated(why: str, pattern: str, page: str, says: str) -> Rule:
    return Rule(STATED, why, error=pattern, page=page, says=says)


def _better(why: str, pattern: str) -> Rule:
    return Rule(BETTER, why, error=pattern)


def _same(why: str, pattern: str) -> Rule:
    return Rule(SAME, why, error=pattern)


_NAMES = (
    _stated(
        "the SDK's clients are no attributes",
        r"/name/((root_)?(async_)?client|a?close|http_socket_options)/",
        _ALL,
        "The SDK's clients are not fields",
    ),
    _stated(
        "validators and helpers of the partner's class are not there",
        r"/name/(build_\w+|validate_\w+|set_default_max_tokens|completion_with_retry)/",
        _ALL,
        "helpers",
    ),
    _stated(
        "arguments that the class's page refuses are no attributes",
        r"/name/(tiktoken_model_name|convert_system_message_to_human|default_metadata|max_concurrent_requests|preamble|search_parameters|user_agent)/",
        _ALL,
        "What differs from the LangChain package of one vendor is on that class's page",
    ),
    _stated(
        "arguments under a second name are read, and not kept under it",
        r"/name/\w+//kind: there => -|/argument/\w+/\w+/value: .* => \"-\"",
        _ALL,
        "`model_dump` has our names of arguments",
    ),
    _stated(
        "`bind_tools` takes `tool_choice` by name",
        r"mistralai/name/bind_tools/",
        "chat_mistralai.md",
        "`bind_tools` takes `tool_choice` by name",
    ),
    _same("what pydantic calls has other names of arguments", r"/name/model_post_init/"),
    _same("`abatch_as_completed` gives an asynchronous iterator", r"/name/abatch_as_completed/"),
    _same("`with_structured_output` chooses its method when it is called", r"/name/with_structured_output/"),
)

_ARGUMENTS = (
    _better("arguments that theirs refuses, or a sample that only theirs refuses, are taken", r"/argument/.*/raises: an error => nothing"),
    _stated(
        "arguments that the class's page refuses",
        r"/argument/.*/raises: nothing => an error",
        _ALL,
        "What differs from the LangChain package of one vendor is on that class's page",
    ),
    _stated(
        "an argument that was not given is None, or what is sent anyway",
        r"/argument/\w+/default/value: ",
        _ALL,
        "An argument that was not given is None",
    ),
    _same("the same request in other words: numbers, names of keys, what is sent unasked", r"/argument/.*/sent: "),
)

_FACTS = (
    _stated(
        "LangChain's loader does not admit classes that it does not list",
        r"/fact/(is_lc_serializable|dumps|get_lc_namespace|lc_id|lc_attributes|lc_secrets)/|/serialized: ",
        _ALL,
        "`is_lc_serializable` is false",
    ),
    _stated("tokens are estimated offline", r"/fact/(get_num_tokens|get_token_ids)", _OPENAI, "tokens are counted by an estimate"),
    _stated("`model_dump` has our names of arguments", r"/fact/model_dump/", _ALL, "`model_dump` has our names of arguments"),
    _stated(
        "parameters that nobody gave are told to nobody",
        r"/fact/(_identifying_params|dict)/|/callbacks/.*/invocation_params",
        _ALL,
        "parameters in traces are those that are sent",
    ),
    _stated("traces name this package", r"/metadata\.lc_versions\.", _ALL, "Traces name this package"),
    _stated(
        "`llm_output` and `generation_info` have fewer keys: all is in `response_metadata`",
        r"/callbacks/.*/(llm_output|generation_info)",
        _ALL,
        "In callbacks, `llm_output`",
    ),
    _same("what `bind`, `bind_tools` and `with_config` give is a model that runs tools", r"/fact/(bind|bind_tools|with_config)/"),
    _same("a model that takes no `stop` is traced without it", r"xai/fact/_get_ls_params/.*ls_stop"),
    _same("profiles come from another table", r"/fact/profile/"),
    _better("models can be pickled; the key stays behind", r"/fact/pickle/|/way/text/pickled/"),
)

_RAISED = (
    _stated(
        "errors of vendors that are asked through openai's SDK are that SDK's",
        r"^(fireworks|groq|mistralai|openrouter|together)/error/",
        _ALL,
        "Errors of vendors that are used through openai's SDK",
    ),
    _better("every error of the vendor is LangChain's too", r"/error/"),
)

_REPLIES = (
    _stated(
        "arguments that do not parse stay unparsable", r"/reply/(broken|cut) call/", _ALL, "Arguments that do not parse stay unparsable"
    ),
    _stated("the message has the vendor's id, or a run's where that is short", r"/(reply|way|cache)/.*/id: ", _ALL, "Short ids of replies"),
    _stated("a filtered reply is a turn", r"azure/reply/filtered/.*raises", "azure_chat_openai.md", "a reply that was filtered is a turn"),
    _stated("ids of calls are the server's", r"ollama/reply/.*tool_call.id: ", "chat_ollama.md", "ids of calls are the server's"),
    _better("what theirs cannot read is read", r"/reply/.*/raises: \w+(Error|Exception).* => nothing"),
    _better("a call without arguments is a call", r"/reply/call without arguments/.*(invalid_tool_call|tool_calls|: nothing)"),
    _better("a call of a custom tool is a call", r"/reply/custom call/.*(non_standard|tool_call)"),
    _better("more of the reply is kept", r"/reply/.*/(response_metadata|additional_kwargs|usage_metadata)[\w.-]*: - => "),
    _better(
        "chunks that repeat a name, a count, a date or a signature are not glued",
        r"^ollama/reply/logprobs/|^fireworks/reply/.*name: |^openrouter/reply/.*reasoning_details",
    ),
    _better("a call of a stream whose chunks have no index stays one call", r"^mistralai/reply/.*call.*/a?stream.*tool_calls"),
    _stated(
        "token counts are those that the vendor sends",
        r"^xai/reply/usage/.*output_tokens",
        "chat_xai.md",
        "token counts are those that the vendor sends",
    ),
    _stated(
        "what the vendor's tools did has no id where the vendor gives none",
        r"^google/reply/.*server_tool_call\.id",
        _GOOGLE,
        "has no id if the vendor gives none",
    ),
    _same("a call without an id has one", r"^google/reply/.*tool_call\.id: "),
    _same("a signature and citations of a whole reply have an empty text", r"^google/reply/(thinking|vendor's tools)/.*content"),
    _better("the usage at a stream's beginning counts", r"/reply/.*/usage_metadata\.(in|out|to)\w+: \d+ => \d+"),
    _better("a refusal is a block, in v1", r"/reply/refusal/(invoke|stream) v1/content(_blocks)?(\.refusal)?: (list: nothing|none|-) => "),
    _stated(
        "a refusal is kept beside the content alone",
        r"^together/reply/refusal/a?invoke/content_blocks",
        "chat_together.md",
        "A refusal is in `additional_kwargs`",
    ),
    _stated(
        "text is a string, or v1 blocks",
        r"-responses/reply/.*/content: |mistralai/reply/.*/content",
        _OPENAI,
        "text is a string, or v1 blocks",
    ),
    _stated(
        "`additional_kwargs` has no second copy of calls",
        r"/reply/.*/additional_kwargs[\w.-]*: there => -",
        _ALL,
        "no second copy of the calls",
    ),
    _stated("a refusal beside text is no block", r"(anthropic|google)/reply/filtered/", _ALL, "A refusal beside text"),
    _stated(
        "citations, pictures and the vendor's tools on OpenAI's wires",
        rf"{_ON_OPENAI}/reply/(citation|vendor's tools|two texts|two summaries)/",
        _ALL,
        "On OpenAI's wires, unless",
    ),
    _stated(
        "blocks have neither empty texts nor ids of items",
        r"/reply/(?!vendor's).*/content_blocks\.?[\w.]*\.(id|phase|extras|annotations)\w*: there => -|/reply/empty/",
        _ALL,
        "An empty text is not a content block",
    ),
    _better("blocks of a stream do not run together", r"/reply/.*/a?stream( v1)?/(content|content_blocks)"),
    _better("reasoning is a block", r"/reply/thinking( and call)?/.*content(_blocks)?[\w.]*: "),
    _better("a call without arguments is a block", r"/reply/call without arguments/.*content_blocks"),
    _stated(
        "`response_metadata` has what the server sent, the model once",
        r"/reply/.*/response_metadata",
        _ALL,
        "has the model's name only as `model_name`",
    ),
    _stated("no count of no cached tokens", r"google/reply/.*/usage_metadata", _GOOGLE, "a count of no cached tokens"),
)

_REST = (
    _stated(
        "a `tool_choice` without its tool is an error",
        r"/bind/an unknown name/.*raises",
        _ALL,
        "A `tool_choice` that names an unknown tool is an error",
    ),
    _stated("a `tool_choice` in another vendor's form is understood", r"/bind/", _ALL, "one in another vendor's form is understood"),
    _better("structured output streams where theirs gives one piece, and works where theirs fails", r"/structured/"),
    _stated(
        "structured output that does not parse raises LangChain's error", r"/spoilt/", _ALL, "raises LangChain's `OutputParserException`"
    ),
)

RULES = (*_NAMES, *_ARGUMENTS, *_FACTS, *_RAISED, *_REPLIES, *_REST)

_BLOCKS = r"/content(_blocks)?"
_LATER = r"(reasoning|tool_call|server_tool_call|server_tool_result|non_standard|text\+?)"
_OF_RESPONSES = r"^(openai|azure)-responses/recorded/.*"

RECORDED = (
    _stated(
        "arguments that do not parse stay unparsable",
        rf"/recorded/[^/]*(cut|unreadable)[^/]*/[^/]*(/(invalid_)?tool_calls|{_BLOCKS}).*tool_(call|use)",
        _ALL,
        "Arguments that do not parse stay unparsable",
    ),
    _stated("the message has the vendor's id, or a run's where that is short", r"/recorded/.*/id: ", _ALL, "Short ids of replies"),
    _better("what theirs cannot read is read", r"/recorded/.*/raises: \w+Error.* => nothing$"),
    _better("an error that a stream ends in is raised", r"^openrouter/recorded/error[^/]*/stream.*/raises: nothing => "),
    _stated(
        "errors of vendors that are asked through openai's SDK are that SDK's",
        r"^groq/recorded/error.*/raises: ",
        _ALL,
        "Errors of vendors that are used through openai's SDK",
    ),
    _better("more of the reply is kept", r"/recorded/.*/(response_metadata|additional_kwargs|usage_metadata)[\w.]*: - => "),
    _stated(
        "`additional_kwargs` has no second copy of calls and of signatures, and nothing that is empty",
        r"/recorded/.*/additional_kwargs\.(tool_calls|function_call|__gemini_\w+|audio): there => -",
        _ALL,
        "no second copy of the calls",
    ),
    _stated("in v1 reasoning is a block alone", r"/recorded/.* v1/additional_kwargs\.reasoning_content: there => -", _ALL, "only a block"),
    _stated(
        "`response_metadata` has what the server sent, the model once",
        r"/recorded/.*/response_metadata\.(model|object|service_tier): there => -",
        _ALL,
        "has the model's name only as `model_name`",
    ),
    _stated(
        "costs stand in the usage",
        r"^openrouter/recorded/.*/response_metadata\.cost\w*: there => -",
        "chat_openrouter.md",
        "cost and cost details are in",
    ),
    _stated("no count of no cached tokens", r"^google/recorded/.*cache_read: there => -", _GOOGLE, "a count of no cached tokens"),
    _stated(
        "token counts are those that the vendor sends",
        r"^xai/recorded/.*output_tokens: number => less",
        "chat_xai.md",
        "token counts are those that the vendor sends",
    ),
    _better("the usage at a stream's beginning counts", r"^anthropic/recorded/.*/stream( v1)?/usage_metadata\.\w+: number => more"),
    _better(
        "chunks that repeat a name, a count, a reason or a signature are not added up",
        r"/recorded/.*/stream( v1)?/(usage_metadata\.\w+: number => less|response_metadata\.(finish_reason|service_tier)|"
        r"additional_kwargs\.reasoning_details|(tool_calls|content_blocks)\.tool_call\.name: text => other)",
    ),
    _same("the model's name is the server's, once, and so is a stream's id", r"/recorded/.*/response_metadata\.(model_name|id): text => "),
    _better("the provider is the vendor", r"^together/recorded/.*\.model_provider: "),
    _same("a time is written as the server wrote it", r"^anthropic/recorded/.*/response_metadata\.container: text => "),
    # ids of calls, calls
    _same(
        "a call without an id has one", r"^(google|ollama)/recorded/.*/(tool_calls|content_blocks)\.tool_call\.id: text => (other|several)"
    ),
    _better(
        "a call whose arguments come in pieces is one call",
        r"^google/recorded/.*/stream( v1)?/.*(: tool_call\+ => -|tool_call\.args: - => there)$",
    ),
    _better(
        "a call of an old or another form is a call, and so is each of several choices",
        r"^(openai|openrouter|(openai|azure)-responses)/recorded/[^/]*call[^/]*/.*"
        r"(: (-|non_standard|non_standard reasoning|tool_call_chunk|invalid_tool_call) => (-|tool_call)|"
        r"\.tool_call\.\w+: - => there|\.(non_standard|tool_call_chunk|invalid_tool_call)\.\w+: there => -)$",
    ),
    # blocks that run together in theirs
    _better(
        "blocks of a stream do not run together",
        rf"^anthropic/recorded/.*/stream( v1)?{_BLOCKS}: (-|str\+?|text\+?)( refusal)? => (-|there|({_LATER} ?)+)$",
    ),
    _better(
        "blocks of a stream do not run together",
        r"^anthropic/recorded/.*/stream( v1)?/(content_blocks|tool_calls)(\.\w+\.\w+: (- => there|text => several)|: - => tool_call)$",
    ),
    _better(
        "blocks of a stream do not run together",
        r"^(anthropic|openai|openrouter)/recorded/.*/stream v1/content_blocks\.(text|reasoning)\.(?!text)\w+: (there => -|several => )|"
        rf"^openai/recorded/.*/stream v1{_BLOCKS}(: - => (reasoning )?tool_call|\.tool_call\.\w+: text => several)|"
        r"^openrouter/recorded/.*/content_blocks\.reasoning\.(args|id|name): there => -",
    ),
    _better("what the vendor tells of a model's change is kept", r"^anthropic/recorded/.*/stream( v1)?/content: string => fallback text$"),
    _stated(
        "a text is a block where a block stands beside it",
        rf"^(anthropic|google)/recorded/.*/stream{_BLOCKS}: str\+? => (-|text\+?)$",
        _ALL,
        "An empty text is not a content block",
    ),
    _same(
        "calls stand behind the other blocks", rf"^anthropic/recorded/vendor's tools call text/invoke( v1)?{_BLOCKS}: - => in another order"
    ),
    # reasoning, refusals, texts
    _better("reasoning is a block", rf"/recorded/[^/]*thinking.*{_BLOCKS}(\.reasoning\.\w+: - => there|: - => reasoning)$"),
    _better("a refusal is a block", rf"^openai/recorded/refusal/.*{_BLOCKS}(\.refusal\.\w+: - => there|: - => refusal)$"),
    _stated(
        "a refusal beside text is no block",
        rf"^(anthropic|google)/recorded/.* v1{_BLOCKS}(\.refusal\.\w+: there => -|: refusal( text)? => -)$",
        _ALL,
        "A refusal beside text",
    ),
    _better(
        "a text that theirs says twice, or cuts off, is the server's", r"^(google|mistralai)/recorded/.*/\S*text: (text|several) => other "
    ),
    _better("a text that theirs says twice, or cuts off, is the server's", r"^(google|mistralai)/recorded/.*/content: text => other text"),
    _better(
        "white space between signatures is kept",
        rf"^google/recorded/thinking text/.*{_BLOCKS}(: (-|str) => text|\.text\.text: text => several)$",
    ),
    _stated(
        "an empty text is no block",
        rf"/recorded/.*{_BLOCKS}(\.text\.type: (there => -|- => there)|: text => -)$",
        _ALL,
        "An empty text is not a content block",
    ),
    # Google's parts
    _stated(
        "a signature stays on the part that it came with",
        rf"^google/recorded/[^/]*text/.*{_BLOCKS}(: (-|text|there) => (-|non_standard|part|part str|string)|"
        r"\.non_standard\.\w+: - => there|\.text\.extras: .*|\.server_tool_call\.extras: - => there)$",
        _GOOGLE,
        "a signature stays on the part that it came with",
    ),
    _same("content without a text is one of both forms of nothing", r"^google/recorded/[^/]*/(invoke|stream)/content: there => -"),
    _better(
        "what the vendor's tools did has the vendor's ids",
        r"^google/recorded/vendor's tools.*\.server_tool_\w+\.(tool_call_)?id: (text|-) => ",
    ),
    # OpenAI's wires
    _stated(
        "text is a string, or v1 blocks",
        rf"{_OF_RESPONSES}/(invoke|stream)/content: .* => (string|-)$",
        _OPENAI,
        "text is a string, or v1 blocks",
    ),
    _stated(
        "reasoning without a text is no block, nor has a block an item's id",
        rf"{_OF_RESPONSES}{_BLOCKS}(\.(?!\w+\.(text|reasoning|refusal|args|name):)\w+\.\w+: there => -|"
        r"\.tool_call\.extras: there => -|: reasoning\+?( text\+?)? => -)$",
        _ALL,
        "A reply's item ids",
    ),
    _stated(
        "citations, pictures and the vendor's tools on OpenAI's wires",
        rf"{_OF_RESPONSES}/invoke/content_blocks\.(text\.text|reasoning\.reasoning): several => text",
        _ALL,
        "On OpenAI's wires, unless",
    ),
    _stated(
        "a call's block has no `extras`",
        r"^anthropic/recorded/.* v1/content_blocks\.tool_call\.extras: there => -",
        _ALL,
        "A reply's item ids",
    ),
    _stated(
        "thinking stands beside the text",
        rf"^mistralai/recorded/thinking text/invoke{_BLOCKS}(: (text thinking|reasoning) => (string|-)|\.reasoning\.\w+: there => -)$",
        "chat_mistralai.md",
        "If the same program imports `langchain-mistralai`",
    ),
    _stated(
        "what Groq's own tools did stands beside the content alone, in v1",
        rf"^groq/recorded/.* v1{_BLOCKS}(: (reasoning )?server_tool_call server_tool_result => -|"
        r"\.(server_tool_\w+\.\w+: there => -|reasoning\.reasoning: several => text))$",
        "chat_groq.md",
        "What Groq's own tools did",
    ),
)
"""Of recorded replies, which have no stored list: each pattern names paths and kinds, and no more than what was looked at."""

"""Why tests of the partner packages fail with our classes, where no private name says it by itself."""

from .sent_rules import SENT_RULES
from .verdicts import GAP, PRIVATE, STATED, Rule

_MODELS = "This package has the chat models of these packages"
_COMMON = "differences.md"

_EVERYWHERE = [
    Rule(
        STATED,
        "embeddings, text completion, clients of other services and helpers are not part of this package",
        tests=("test_imports.py::test_all_imports",),
        error=r"^MissingName: langchain_\w+\.(OpenAI|AzureOpenAI|OpenAIEmbeddings|AzureOpenAIEmbeddings|\w+\.(embeddings|llms)\.\w+)\b"
        r"|^MissingName: langchain_\w+\.(embeddings|llms)\.\w+$|^MissingName: langchain_anthropic\.output_parsers\.",
        page=_COMMON,
        says=_MODELS,
    ),
    Rule(
        STATED,
        "the SDK's clients are no fields that could be replaced",
        error=r"(no|the) (attribute|field) ['\"](root_)?(async_)?client['\"]|^MissingName: \S+\.chat_models\.(Async)?Client$"
        r"|^MissingName: \S+\.ChatGoogleGenerativeAI\.client$",
        page=_COMMON,
        says="The SDK's clients are not fields",
    ),
    Rule(
        STATED,
        "LangChain's loader does not admit classes that it does not list",
        error="doesn't implement serialization|not_implemented",
        page=_COMMON,
        says="`is_lc_serializable` is false",
    ),
    Rule(
        STATED,
        "no LangSmith gateway",
        error=r"gateway|'NoneType' object has no attribute 'get_secret_value'",
        page=_COMMON,
        says="No class looks for LangSmith's gateway",
    ),
    Rule(
        STATED,
        "traces name this package's version",
        tests=("*test_metadata_versions", "*test_anthropic_model_params"),
        page=_COMMON,
        says="Traces name this package",
    ),
    Rule(
        STATED,
        "an address without scheme is refused where the model is made",
        error="is no address",
        page=_COMMON,
        says="an address without scheme",
    ),
    Rule(
        STATED,
        "an unknown constructor argument is an error, not a warning",
        tests=("*test_chat_*_extra_kwargs", "*test_anthropic_incorrect_field"),
        page=_COMMON,
        says="Unknown constructor arguments are errors",
    ),
]

_GATEWAY = [
    Rule(
        STATED,
        "no LangSmith gateway",
        "langchain_openai",
        ("*test_langsmith_gateway_api_key",),
        page=_COMMON,
        says="No class looks for LangSmith's gateway",
    ),
    Rule(
        STATED,
        "`base_url` is None where it was not given, and there is no LangSmith gateway",
        "langchain_anthropic",
        ("*test_langsmith_gateway_false", "*test_langsmith_gateway_unset"),
        page=_COMMON,
        says="No class looks for LangSmith's gateway",
    ),
]

_OPENAI = [
    Rule(
        STATED,
        "text is a string or v1 blocks",
        "langchain_openai",
        error="output_version='responses/v1'",
        page="chat_openai.md",
        says='`output_version="responses/v1"` is refused',
    ),
    Rule(
        STATED,
        "a deployment has to be named",
        "langchain_openai",
        error="which deployment",
        page="azure_chat_openai.md",
        says="azure_deployment",
    ),
    Rule(
        STATED,
        "tokens are estimated",
        "langchain_openai",
        ("test_token_counts.py::*",),
        page="chat_openai.md",
        says="tokens are counted by an estimate",
    ),
    Rule(
        STATED,
        "arguments that only the Responses API has are refused beside `use_responses_api=False`",
        "langchain_openai",
        error="belongs to the Responses API, which use_responses_api=False rules out",
        page="chat_openai.md",
        says="`False` none",
    ),
    Rule(
        STATED,
        "a timeout between events of 0 or less is refused, and none is taken from the environment",
        "langchain_openai",
        error=r"stream_chunk_timeout|assert (None|False|0.0) == (120.0|0.0)|test_stream_chunk",
        tests=("*_stream_chunk_timeout_env_*",),
        page="chat_openai.md",
        says="`stream_chunk_timeout` also holds for synchronous streams",
    ),
    Rule(
        STATED,
        "a model without schemas is asked by function calling, without a warning",
        "langchain_openai",
        error="DID NOT WARN",
        page="chat_openai.md",
        says="`json_schema` becomes `function_calling`",
    ),
    Rule(GAP, "no helper `custom_tool`; custom tools are given as dicts", "langchain_openai", error=r"langchain_openai\.custom_tool$"),
    Rule(
        GAP,
        "the attribute `use_responses_api` does not say what the model's name decides",
        "langchain_openai",
        ("chat_models/test_base.py::test_infer_use_responses_api[[]None-kwargs[67]]",),
    ),
    Rule(GAP, "a `response_format` in `bind_tools` is not strict unless said", "langchain_openai", error="^KeyError: 'strict'"),
]

_OLLAMA = [
    Rule(
        PRIVATE,
        "replaces a function inside the partner's own modules",
        "langchain_ollama",
        error=r"chat_models\.validate_model$",
    ),
]

_ANTHROPIC = [
    Rule(
        STATED,
        "a tool whose schema the vendor refuses is an error, or with `skip_invalid_tools=True` left out and logged",
        "langchain_anthropic",
        (
            "*test_bind_tools_*composition",
            "*root_combinator*",
            "*every_offending_combinator",
            "*test_bind_tools_all_tools_dropped_raises",
            "*test_bind_tools_dropped_tool_forced_*",
            "*_partial_drop_*",
        ),
        error="cannot be sent: (allOf|the type of its input_schema)",
        page="chat_anthropic.md",
        says="a tool whose schema the vendor refuses is an error",
    ),
    Rule(
        STATED,
        "with thinking, `function_calling` becomes `json_schema`; no warning",
        "langchain_anthropic",
        ("*_skips_forced_tool_choice_when_unsupported*", "test_sonnet55.py::test_*structured_output*"),
        page="chat_anthropic.md",
        says="`function_calling` with a model that thinks becomes `json_schema`",
    ),
    Rule(
        STATED,
        "a forced `tool_choice` is taken out when the request is made, not in `bind_tools`",
        "langchain_anthropic",
        ("*test_bind_tools_drops_forced_tool_choice_when_*",),
        page="chat_anthropic.md",
        says="a forced `tool_choice` of a model that thinks is not sent, and logged",
    ),
    Rule(
        STATED,
        "tokens are estimated offline",
        "langchain_anthropic",
        ("*test_get_num_tokens_from_messages_*",),
        page="chat_anthropic.md",
        says="`get_num_tokens_from_messages` estimates offline",
    ),
    Rule(GAP, "no helper `convert_to_anthropic_tool`", "langchain_anthropic", error=r"\.convert_to_anthropic_tool$"),
    Rule(
        GAP,
        "profiles know neither dated names nor the context-1m beta apart, and lack Claude Mythos 5",
        "langchain_anthropic",
        ("*test_profile", "*test_profile_1m_*", "*test_profile_declares_*[[]claude-mythos-5*"),
        error="^KeyError: 'reasoning_effort_default'",
    ),
    Rule(GAP, "a key of the vendor's in `model_kwargs` is no warning", "langchain_anthropic", ("*test_anthropic_fields_in_model_kwargs",)),
    Rule(GAP, "an unknown effort is left for the vendor to refuse", "langchain_anthropic", ("*effort_parameter_validation",)),
    Rule(
        GAP,
        "`disable_parallel_tool_use` is added when the request is made",
        "langchain_anthropic",
        ("*test_anthropic_bind_tools_does_not_mutate_tool_choice",),
    ),
]

_GROQ = [
    Rule(
        GAP,
        "`with_structured_output` settles its format when the request is made",
        "langchain_groq",
        ("*test_with_structured_output_json_schema_strict_ignored_*",),
    ),
]

_OPENROUTER = [
    Rule(
        STATED,
        "requests go through the openai SDK, so nothing is given to the vendor's",
        "langchain_openrouter",
        error="No module named 'openrouter'",
        page="chat_openrouter.md",
        says="requests go through the openai SDK",
    ),
    Rule(
        STATED,
        "`n` is 1",
        "langchain_openrouter",
        error="a run has one reply, so n must be 1",
        page="chat_openrouter.md",
        says="`n` is 1",
    ),
    Rule(
        STATED,
        "a missing key is noticed at the first request",
        "langchain_openrouter",
        ("*test_missing_api_key_raises",),
        page="chat_openrouter.md",
        says="a missing key is noticed then",
    ),
    Rule(
        STATED,
        "`json_mode` is JSON mode",
        "langchain_openrouter",
        ("*_json_mode_warns_*", "*_json_mode_with_strict_warns_*"),
        page="chat_openrouter.md",
        says="`json_mode` is JSON mode",
    ),
    Rule(
        STATED,
        "LangChain's loader does not admit classes that it does not list",
        "langchain_openrouter",
        ("*test_is_lc_serializable", "*test_dumpd_excludes_default_headers"),
        page="chat_openrouter.md",
        says="`is_lc_serializable` is false",
    ),
    Rule(
        GAP,
        "errors of `with_structured_output` have other words",
        "langchain_openrouter",
        error="Expected regex: '(schema must be specified|Unrecognized method)'",
    ),
    Rule(
        GAP,
        "`tool_choice=True` asks for any tool, whatever their number",
        "langchain_openrouter",
        ("*test_bind_tools_bool_true_*",),
    ),
    Rule(
        GAP,
        "`model_kwargs` may hold names that are arguments too",
        "langchain_openrouter",
        ("*test_duplicate_model_kwargs_raises", "*test_known_field_in_model_kwargs_raises"),
    ),
    Rule(
        GAP,
        "`base_url` says the whole address: the vendor's own where none is given, with `/api/v1`",
        "langchain_openrouter",
        ("*test_basic_instantiation", "*test_base_url_from_env"),
    ),
    Rule(GAP, "profiles come from another table", "langchain_openrouter", ("*test_profile",)),
]

_XAI = [Rule(GAP, "an address has no slash at its end", "langchain_xai", ("*::test_init_from_env",))]

_GOOGLE = [
    Rule(
        STATED,
        "`http_options`, `transport`, `default_metadata` and the like are refused or absent",
        "langchain_google_genai",
        error="^ConfigurationError: http_options cannot be sent|no attribute 'default_metadata'|argument '(http_options|transport)'",
        page="chat_google_generative_ai.md",
        says="`http_options`",
    ),
    Rule(
        STATED,
        "`n` above 1 is refused",
        "langchain_google_genai",
        error="ChatGoogleGenerativeAI: (n|candidate_count): input should be 1",
        page="chat_google_generative_ai.md",
        says="`n` above 1 is refused",
    ),
    Rule(
        STATED,
        "`temperature` is not sent unless given, and its range is the vendor's to check",
        "langchain_google_genai",
        ("*test_temperature_range_*", "*test_temperature_default_*"),
        page="chat_google_generative_ai.md",
        says="`temperature` is not sent unless given",
    ),
    Rule(
        STATED,
        "the SDK's client, which the test replaces, is not what sends requests",
        "langchain_google_genai",
        error="SocketBlockedError",
        page="chat_google_generative_ai.md",
        says="`client`, `async_client`",
    ),
    Rule(
        PRIVATE,
        "replaces something inside the partner's own modules",
        "langchain_google_genai",
        error=r"^MissingName: (langchain_google_genai\.(chat_models|embeddings)\.(uuid|logger|mimetypes|ImageBytesLoader)\b|$)",
    ),
    Rule(
        GAP,
        "the enumerations `Modality`, `HarmCategory` and error class are not exported; their values are given as text",
        "langchain_google_genai",
        error=r"^MissingName: langchain_google_genai\.(\w+\.)?(Modality|HarmCategory|ChatGoogleGenerativeAIError)",
    ),
    Rule(
        GAP,
        "ranges of penalties are left for the vendor to check, and they are not told to traces",
        "langchain_google_genai",
        ("*test_penalty_out_of_range_raises*", "*test_penalties_in_identifying_params"),
    ),
    Rule(
        GAP,
        "profiles come from another table and know fewer preview models",
        "langchain_google_genai",
        (
            "*test_reasoning_effort_profile_fields[[]gemini-3-pro-image-preview*",
            "*test_reasoning_effort_profile_fields[[]gemini-3.1-flash-*-preview*",
            "*test_profile",
        ),
    ),
    Rule(
        STATED,
        "`project` without Vertex AI is refused",
        "langchain_google_genai",
        error="project and location are for Vertex AI",
        page="chat_google_generative_ai.md",
        says="else if `credentials` or `project` are given",
    ),
    Rule(
        STATED,
        "`model` is kept as it was given, also with the path to it",
        "langchain_google_genai",
        ("*test_model_name_normalization_for_vertexai", "*test_normalize_regional_and_resource_model_names"),
        page="chat_google_generative_ai.md",
        says="the model's name, also with the path to it",
    ),
    Rule(
        GAP,
        "settings are stored and traced as they were given, or as they are sent, not under the names of google-genai",
        "langchain_google_genai",
        ("*test_thinking_config_object_is_stored_*", "*test_image_config_in_identifying_params"),
    ),
    Rule(
        GAP,
        "a schema's references are written out when a structured output is asked for",
        "langchain_google_genai",
        ("*test_ref_preservation",),
    ),
]

_DEEPSEEK = [
    Rule(
        GAP,
        "constants of the partner's module are not there",
        "langchain_deepseek",
        error="DEFAULT_API_BASE",
    ),
]

RULES = (*_EVERYWHERE, *_GATEWAY, *_OPENAI, *_OLLAMA, *_ANTHROPIC, *_GROQ, *_OPENROUTER, *_XAI, *_GOOGLE, *_DEEPSEEK, *SENT_RULES)

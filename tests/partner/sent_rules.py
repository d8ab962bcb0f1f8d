"""Why tests that read what is sent fail: the partner packages' tests of a request, whose private helpers are in `inside/sent.py`."""

from .verdicts import GAP, PRIVATE, STATED, Rule

_COMMON = "differences.md"
_CLAUDE = "chat_anthropic.md"
_OPENAI_PAGE = "chat_openai.md"
_TYPE = "a message goes to the Responses API without `type`, and a text alone as a string"
_LATER = "a later system message keeps its place, where the model takes none there as the user's text"

_EVERYWHERE = [
    Rule(
        STATED,
        "a result without a call is not sent, and a call without a result is answered as interrupted",
        error="^ConfigurationError: there is no message to answer|Actual message: 'there is no message to answer|This call was interrupted",
        page="messages.md",
        says="Results without a call are dropped, with a WARNING",
    ),
    Rule(
        STATED,
        "a content block that the wire does not know is an error",
        error="^UnsupportedFeatureError: content block of type '(made_up_block|tool_removal)' cannot be sent",
        tests=(
            "*::test__format_messages_*system_unrecognized_block_dropped*",
            "*::test__format_messages_system_tool_change_block_stripped_on_*",
            "*::test__format_messages_system_stripped_to_empty_hoists_empty_list",
            "*::test_system_stripped_to_empty_omits_system_field",
            "*::test_stripped_tool_change_block_no_beta",
        ),
        page=_COMMON,
        says="A content block that the vendor's API does not know is an error",
    ),
    Rule(
        STATED,
        "data that is no base64 is an error",
        error="^UnsupportedFeatureError: content block of type '[a-z_]+' cannot be sent: its data is no base64",
        page=_COMMON,
        says="whose data is not base64",
    ),
    Rule(
        PRIVATE,
        "looks at arguments of the SDK, such as `extra_body`, which is no key of the request",
        error="^KeyError: '(extra_body|text_format)'|'extra_body' in {|'reasoning_effort' not in {",
    ),
]

_OPENAI = [
    Rule(
        STATED,
        "a file whose id has another vendor's form is an error",
        "langchain_openai",
        error="cannot be sent: the file 'file_123' is another vendor's",
        page=_COMMON,
        says="a file whose id has another vendor's form",
    ),
    Rule(
        PRIVATE,
        "asks about a part of a request",
        "langchain_openai",
        ("*test_infer_use_responses_api_remains_dynamic[[]kwargs[45]]",),
    ),
    Rule(
        STATED,
        "nothing is sent that nobody asked for, `stream: false` neither",
        "langchain_openai",
        ("*::test__get_request_payload",),
        page=_OPENAI_PAGE,
        says="Nothing is sent that you did not ask for",
    ),
    Rule(
        STATED,
        "None as a keyword of a call removes a parameter",
        "langchain_openai",
        ("*::test_prompt_cache_key_parameter_exclusion",),
        page=_OPENAI_PAGE,
        says="None as a keyword of a call removes a parameter",
    ),
    Rule(
        STATED,
        _TYPE,
        "langchain_openai",
        (
            "*test__construct_responses_api_input_human_message_with_*_conversion",
            "*test__construct_responses_api_input_message_type_on_all_roles",
            "*test__construct_responses_api_input_multiple_message_types",
            "*test_get_request_payload_responses_api_input_file_blocks_passthrough",
            "*test_additional_tools_block_empties_message",
            "*test_configuration_update_block_becomes_input_item",
        ),
        page=_OPENAI_PAGE,
        says="messages go to the Responses API without `type`",
    ),
    Rule(
        STATED,
        "items go back whole only to the endpoint and model that sent them; else the reply's text and calls",
        "langchain_openai",
        (
            "*test__construct_responses_api_input_multiple_message_components",
            "*test__construct_responses_api_input_skips_blocks_without_text",
            "*test__construct_responses_api_input_store_*",
        ),
        page=_OPENAI_PAGE,
        says="to the endpoint and model that sent it and to no other",
    ),
    Rule(
        STATED,
        "a call for the caller's machine that nobody answered is not sent back",
        "langchain_openai",
        ("*test__construct_responses_api_input_apply_patch_round_trip",),
        page=_OPENAI_PAGE,
        says="A call that nobody answered is not sent back",
    ),
    Rule(
        STATED,
        "the temperature is sent unless the profile, or an effort, rules it out",
        "langchain_openai",
        ("*test_gpt_5_1_temperature_with_reasoning_effort_none[[]True]",),
        page=_OPENAI_PAGE,
        says="the constructor's temperature is not sent to a model whose profile says that it takes none",
    ),
    Rule(
        GAP,
        "a model's name is known in lower case only",
        "langchain_openai",
        ("*test_gpt_5_temperature_case_insensitive[[]Gpt-5-Turbo-*",),
    ),
    Rule(
        GAP,
        "an `additional_tools` item follows the text of its message, and its misuse is an error of other words",
        "langchain_openai",
        ("*test_additional_tools_block_becomes_input_item*", "*test_additional_tools_block_off_system_message_raises[[]human-False-*"),
    ),
]

_ANTHROPIC = [
    Rule(
        STATED,
        _LATER,
        "langchain_anthropic",
        (
            "*test__format_messages_system_*_hoisted",
            "*test__format_messages_system_hoisted_when_*",
            "*test__format_messages_keeps_both_runs_*",
            "*test__format_messages_two_held_back_runs_*",
            "*test__format_messages_non_*_hoist*",
            "*test_non_leading_system_hoisted_when_*",
            "*test__format_messages_second_unplaceable_*",
            "*test__format_messages_system_cache_control_preserved_in_both_paths",
            "*test__format_messages_*final_assistant_turn_*_past_system",
        ),
        page=_CLAUDE,
        says="later ones keep their place",
    ),
    Rule(
        STATED,
        "Claude on Bedrock and in other places is another API",
        "langchain_anthropic",
        (
            "*test_cache_control_kwarg_bedrock_*",
            "*test_cache_control_kwarg_unknown_subclass_*",
            "*test_cache_control_breakpoint_lands_on_trailing_system_turn",
        ),
        page=_CLAUDE,
        says="Claude on Bedrock and on Vertex AI has other APIs",
    ),
    Rule(
        STATED,
        "`is_error` is sent where it is true",
        "langchain_anthropic",
        ("*test__format_messages_with_*tool_calls",),
        page=_CLAUDE,
        says="`is_error` of a result is sent if it is true",
    ),
    Rule(
        STATED,
        "a call that could not be parsed goes back as `INVALID_JSON`, with what the model wrote",
        "langchain_anthropic",
        ("*test_invalid_tool_call_retains_tool_use_for_error_result[[]*expected_input[02]]", "*test_v1_invalid_tool_call_retains_*"),
        page="wire_quirks.md",
        says='{"INVALID_JSON": "..."}',
    ),
    Rule(
        STATED,
        "a conversation that begins with the assistant gets a message before it",
        "langchain_anthropic",
        ("*test_invalid_tool_call_does_not_duplicate_existing_tool_use", "*_tool_search_result_drops_streaming_index"),
        page=_CLAUDE,
        says="begins with the assistant",
    ),
    Rule(
        STATED,
        "what the vendor's own tools did goes back to the endpoint and model that wrote it only",
        "langchain_anthropic",
        ("*test_tool_search_result_formatting", "*test__format_messages_filters_non_anthropic_blocks[[]reasoning]"),
        page=_CLAUDE,
        says="to the endpoint and model that wrote it and to no other",
    ),
    Rule(
        STATED,
        "a forced `tool_choice` of a model that thinks is not sent",
        "langchain_anthropic",
        ("*test_forced_tool_choice_left_to_api*",),
        page=_CLAUDE,
        says="a forced `tool_choice` of a model that thinks is not sent, and logged",
    ),
    Rule(
        GAP,
        "thinking and sampling that a model does not take are left for the vendor to refuse",
        "langchain_anthropic",
        ("*test_fable_5_1_rejects_*", "*test_opus_5_rejects_*", "*test_sonnet55.py::test_invalid_configuration*"),
    ),
    Rule(
        GAP,
        "a system message after the result of a server tool is sent as the user's text",
        "langchain_anthropic",
        ("*test__format_messages_system_after_server_tool_result_sent_in_place*",),
    ),
    Rule(
        GAP,
        "citations of a system text are not sent",
        "langchain_anthropic",
        ("*test__format_messages_system_citations_preserved_in_place",),
    ),
    Rule(
        GAP,
        "an item of another vendor's without a name becomes a call",
        "langchain_anthropic",
        ("*test__format_messages_filters_non_anthropic_blocks[[]function_call]",),
    ),
    Rule(
        GAP,
        "the beta of tool changes is named beside that of inline tools",
        "langchain_anthropic",
        ("*test_explicit_inline_beta_covers_reference_tool_change",),
    ),
    Rule(GAP, "skills without code execution are no warning", "langchain_anthropic", ("*test_skills_without_code_execution_tool_warns",)),
    Rule(
        GAP,
        "parameters that are not set are left out of traces",
        "langchain_anthropic",
        ("*test_effort_in_identifying_params[[]model_kwargs0]",),
    ),
]

_DEEPSEEK = [
    Rule(
        STATED,
        "DeepSeek on Azure is not known by its address",
        "langchain_deepseek",
        ("*test_payload_converts_dict_tool_choice_on_azure",),
        page="chat_deepseek.md",
        says="DeepSeek on Azure: use",
    ),
]

_GOOGLE = [
    Rule(
        GAP,
        "a system message alone is an error with other words",
        "langchain_google_genai",
        ("*::test_system_message_only_raises_error",),
    ),
    Rule(
        PRIVATE,
        "looks at arguments of the SDK, such as `http_options`",
        "langchain_google_genai",
        error=r"GenerateContentConfig\(\)\.http_options",
    ),
    Rule(
        STATED,
        "retries are set where the model is made",
        "langchain_google_genai",
        error="max_retries is set where the model is made",
        page=_COMMON,
        says="are set where the model is made",
    ),
    Rule(
        GAP,
        "prefilling and sampling that a model does not take are left for the vendor to refuse",
        "langchain_google_genai",
        ("*test_fixed_sampling_models_reject_model_prefill*", "*test_fixed_sampling_models_omit_custom_sampling_parameters*"),
    ),
    Rule(
        GAP,
        "a message of the model without content is not sent",
        "langchain_google_genai",
        ("*test_empty_ai_message_content_is_normalized_for_vertex*", "*test_filter_messages_empty_foreign_vertex_model_turn_*"),
    ),
    Rule(
        GAP,
        "files that a message of the model's names are not sent",
        "langchain_google_genai",
        ("*test_prepare_request_checks_target_backend_for_vertex_gcs_history*",),
    ),
    Rule(
        GAP,
        "`thinking_level` beside `thinking_budget` is no warning, and does not go before `reasoning_effort` of the same call",
        "langchain_google_genai",
        (
            "*test_thinking_level_takes_precedence_over_thinking_budget",
            "*test_thinking_config_*_level_budget_warning",
            "*test_reasoning_effort_call_time_kwarg_yields_to_thinking_level_kwarg",
        ),
    ),
]

_PRESETS = [
    Rule(PRIVATE, "asks about a content that no message can have", error="^ValidationError: 2 validation errors for HumanMessage"),
    Rule(
        GAP,
        "a content of texts alone is sent as a string, an empty one too",
        "langchain_openrouter",
        ("*test_ai_message_with_list_content_filters_non_text", "*TestFormatMessageContent::test_text_block_passthrough"),
    ),
    Rule(
        GAP,
        "a content of texts alone is sent as a string, an empty one too",
        "langchain_groq",
        ("*test_format_message_content_empty_list",),
    ),
    Rule(
        STATED,
        "reasoning goes back only to the endpoint and model that sent it",
        "langchain_openrouter",
        error="^KeyError: '(reasoning|reasoning_details)'",
        page="chat_openrouter.md",
        says="only to the same model at",
    ),
    Rule(
        STATED,
        "the role `developer` of a `ChatMessage` is sent as `system`",
        "langchain_openrouter",
        ("*test_chat_message_to_dict",),
        page="chat_openrouter.md",
        says="the role `developer` of a `ChatMessage` is sent as `system`",
    ),
    Rule(
        GAP,
        "a file by its address that is not known as a PDF is not sent",
        "langchain_openrouter",
        error="^UnsupportedFeatureError: content block of type 'file' cannot be sent: a file needs base64 data",
    ),
    Rule(
        GAP,
        "a file by its address is sent with a name, too",
        "langchain_openrouter",
        ("*TestFormatMessageContent::test_file_url_block",),
    ),
]

SENT_RULES = (*_EVERYWHERE, *_OPENAI, *_ANTHROPIC, *_DEEPSEEK, *_GOOGLE, *_PRESETS)

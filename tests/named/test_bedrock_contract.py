"""The contract's behaviours over Bedrock's two wires, as every wire of this package has them.

Not here: what a class declares and how (schemas, strictness, names), which is its own `bind_tools`, and other methods of structured output
than function calling, which the mixin refuses with tools.
"""

import pytest

from tests.contract import test_control, test_output, test_same_bytes, test_streams, test_thinking, test_tools
from tests.named.bedrock import ROWS

pytestmark = pytest.mark.parametrize("row", ROWS)

_NAMES = {
    test_control: ("test_a_call_waits_until_it_is_approved", "test_policies_progress_and_cancelling"),
    test_output: ("test_a_chain_gives_the_text_of_the_run", "test_batches_are_runs", "test_event_streams_are_runs"),
    test_same_bytes: ("test_each_request_begins_with_the_one_before", "test_requests_do_not_depend_on_delays_or_listeners"),
    test_streams: (
        "test_text_leaves_at_once",
        "test_a_caller_may_change_the_chunks_it_is_given",
        "test_new_messages_of_chunks_sum_and_message_agree",
        "test_the_run_message_and_its_parts_are_the_same_input",
        "test_interleaved_streams_of_one_model",
        "test_interleaved_asynchronous_streams_of_one_model",
        "test_many_runs_at_once",
        "test_cancelling_a_run_cancels_its_tools",
        "test_closing_a_stream_while_tools_run",
        "test_an_error_in_a_later_turn_loses_nothing",
        "test_a_stream_that_just_ends_is_an_error_or_runs_nothing",
        "test_other_refusals_are_errors",
    ),
    test_thinking: (
        "test_a_model_that_thinks_between_its_calls",
        "test_thoughts_are_the_same_input_however_they_are_stored",
        "test_thoughts_leave_before_the_text",
    ),
    test_tools: tuple(name for name in vars(test_tools) if name.startswith("test_")),
}
for _module, _chosen in _NAMES.items():
    globals().update({name: getattr(_module, name) for name in _chosen})

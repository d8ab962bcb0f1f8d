"""Why a mutant may live: by what `Mutant.key` says of it."""

# ruff: noqa: E501 - the changed code is the key

EQUIVALENT: dict[str, str] = {
    "_after: return int(text) if text.isascii() and text.isdigit() and (len(text) <= len(str(_LAST_ID))) else -1: -1 -> -2": "every frame comes after a number below 0",
    "Batch._reports: raise NotImplementedError -> pass": "never called: the classes that there are have their own",
    "_problems: entries: list[Any] = list(error.errors(include_url=False, include_context=False, include_input=False)): include_url=False -> include_url=True": "of the entries only their places and messages are read",
    "_cancel_tasks: if not task.wait(max(0.0, end - time.monotonic())): max(0.0, end - time.monotonic()) -> max(-1.0, end - time.monotonic())": "a wait of less than nothing is a wait of nothing",
    "_Depth.__init__: self.ended = 0 -> self.ended = 1": "it is only compared with what it was before",
    "_with_ids: for before, after in zip(old, new, strict=True): strict=True -> strict=False": "an assertion, both are of one length",
    "_sound_calls: if not all(ids) or (len(ids) > 1 and len(set(ids)) != len(ids)): len(ids) > 1 -> len(ids) > 0": "one id is as many as its set has",
    "_sound_calls: return ids -> return None": "but for speed: a message that is not known to be sound is looked at in full",
    "says_in_blocks: return False -> return None": "callers ask only whether it is true",
    "_several: return [different[0].arguments]: different[0] -> different[-1]": "there is one",
    "_InOrder._starts: return False -> return None #3": "callers ask only whether it is true",
    "JsonScanner.feed: position, end = (0, len(piece)): (0, len(piece)) -> (-1, len(piece))": "a search from before the beginning begins at the beginning, and an empty piece has nothing to be found",
    "is_prefix: return False -> return None": "callers ask only whether it is true",
    "TurnAccumulator._take_extra: if not extra or not _FRAGMENTS & extra.keys(): not extra or not _FRAGMENTS & extra.keys() -> not extra and (not _FRAGMENTS & extra.keys())": "but for speed: what has no fragments is copied whole",
    "mark_read: method.__dict__[_READ] = True -> method.__dict__[_READ] = False": "its presence alone is asked",
    "_text_alone: block = content[0] if len(content) == 1 else None: content[0] -> content[-1]": "there is one",
    "-: _depth: ContextVar[int] = ContextVar('autotools_thread_depth', default=0): default=0 -> default=-1": "depths are only told apart by it",
    "_FailoverModels._form: if known is None or known[0] is not request.form: known[0] -> known[1]": "but for speed: a model's form is made anew for each turn",
}
"""Those that do the same as the code that they were made from."""

ACCEPTED: dict[str, str] = {
    "_item: while inside and (not inside[-1]): -1 -> -0": "killed since by `test_an_item_may_begin_below_its_mark`",
    "markdown_parts: return _parts([line.expandtabs(4).rstrip() for line in printable(mend_surrogates(text)).split('\\n')], 0): _parts([line.expandtabs(4).rstrip() for line in printable(mend_surrogates(text)).split('\\n')], 0) -> _parts([line.expandtabs(4).rstrip() for line in printable(mend_surrogates(text)).split('\\n')], 1)": "killed since by `test_blocks_stand_in_blocks_six_deep`",
    "GradioChat.__init__: self._run_id = '' -> pass": "killed since by `test_a_reader_who_comes_while_a_tool_runs_a_model_sees_its_text`",
    "_read: await events.aclose() -> pass": "killed since by `test_what_cannot_be_shown_closes_the_events`",
    "_is_settled: cut = any((chunk.response_metadata.get('finish_reason') in ('incomplete', 'length') for chunk in chunks)): any((chunk.response_metadata.get('finish_reason') in ('incomplete', 'length') for chunk in chunks)) -> all((chunk.response_metadata.get('finish_reason') in ('incomplete', 'length') for chunk in chunks))": "killed since by `test_a_reply_that_was_cut_off_is_not_asked_for_again_under_its_format`",
    "ChatOllama._client_settings: common = {name: value for name, value in both.items() if name not in _OF_A_REQUEST}: name not in _OF_A_REQUEST -> name in _OF_A_REQUEST": "killed since by `test_arguments_of_both_clients_reach_both`",
    "-: ERRORS = ErrorMapping(library=_library, error_class=__getattr__, prefix='Ollama', by_status={408: 'StatusEr...: {408: 'StatusError', 409: 'StatusError', 503: 'OverloadedError'} -> {408: 'StatusError', 408: 'StatusError', 503: 'OverloadedError'} #2": "killed since by `test_statuses_are_typed`",
    "split_generations: results += 1 -> results -= 1": "killed since by `test_results_of_no_call_are_numbered_among_the_results`",
    "_TaskBatch._stop: await asyncio.wait(unfinished, timeout=2 * GRACE_SECONDS): 2 * GRACE_SECONDS -> 3 * GRACE_SECONDS": "how long an end is waited for: no test measures it",
    "_cancel: task.add_done_callback(lambda ended: ended.cancelled() or ended.exception()) -> pass": "only what asyncio logs about a task that nobody looks at, when it is collected",
    "_stop_loops: thread.ending = True -> pass": "only when the program ends, which tests see from outside: their program runs without the change",
    "_stop_loops: thread.join(timeout=1.0): timeout=1.0 -> timeout=2.0": "how long an end is waited for: no test measures it",
    "AsyncProgress._tell_one: if self._closed and isinstance(error, asyncio.CancelledError): self._closed and isinstance(error, asyncio.CancelledError) -> self._closed or isinstance(error, asyncio.CancelledError)": "open: only a listener that is cancelled while its batch is closed could tell",
    "AsyncProgress._tell_one: raise -> pass": "open: only a listener that is cancelled while its batch is closed could tell",
    "AsyncProgress._wake: self._closed = True -> pass": "open: only a report to an event loop that is closed could tell",
    "Progress.end: self._ended.add(index) -> pass": "open: only a report that a tool makes after it has ended could tell",
    "_Reports.stop: self._waiting.clear() -> pass": "open: only a report that waits while its batch is closed could tell, and a closed batch tells nobody",
    "-: SLOW_SECONDS = 5.0 -> SLOW_SECONDS = 6.0": "a number that was chosen",
    "_ThreadBatch._run_with_timeout: self._in_time(run) -> pass": "a call that waited for its thread would have that time once more: no test measures it",
    "_threads_after_fork: _depths.clear() -> pass": "only in a forked process, which tests see from outside: their program runs without the change",
    "translate_functions: open_calls = {name: _derived_id(len(translated), 0)}: _derived_id(len(translated), 0) -> _derived_id(len(translated), 1)": "which id is made says nothing: it is the same each time, and no other's",
    "_sound_calls: if not all(ids) or (len(ids) > 1 and len(set(ids)) != len(ids)): len(ids) > 1 -> len(ids) > 0": "killed since by `test_a_call_without_an_id_is_given_one_beside_one_that_has_one`",
    "_first_text: return next((number for number, block in enumerate(content) if isinstance(block, str) or block.get('type') ...: next((number for number, block in enumerate(content) if isinstance(block, str) or block.get('type') == 'tex... -> next((number for number, block in enumerate(content) if isinstance(block, str) or block.get('type') == 'tex...": "the same blocks leave in two chunks and not in one",
    "_ByShape._first_of_name: self._latest[fragment.name] = self._latest[previous.name] = previous -> pass": "killed since by `test_a_name_in_parts_is_that_of_one_call`",
    "is_prefix: return False -> return True": "killed since by `test_a_value_that_no_json_has_is_not_a_text_that_was_cut_off`",
    "Slot.grows_to: last = self.pieces[-1] if self.pieces else '': -1 -> -0": "no difference in 20,000 random streams: text that grows and then does not breaks either way",
    "describe_fields: if name in fields and fields[name].description is None: name in fields -> name not in fields": "run when the classes are made, before any test begins: `tests/unit/providers/test_field_descriptions.py` sees what came of it",
    "_Reading.chunk: self._decided = True -> self._decided = False": "open: a `_stream` of a subclass that passes on a turn which the inherited one has ended; the tests of it see the first end",
    "read_astream: return _astream -> return None": "run when a class is made, before any test begins",
}
"""Those that do not, and that no test is meant to tell."""

REASONS = {**{key: f"equivalent: {reason}" for key, reason in EQUIVALENT.items()}, **ACCEPTED}

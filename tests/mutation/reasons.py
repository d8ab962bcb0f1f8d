"""Why a mutant may live: by what `Mutant.key` says of it."""

# ruff: noqa: E501 - the changed code is the key

REASONS: dict[str, str] = {
    "executor/background.py BackgroundTask.cancel: self._loop is not None and (not self._done.is_set()) -> self._loop is not None or not self._done.is_set()": "equivalent: a closed or missing loop is caught as `RuntimeError`, or the task has ended and the request to stop finds nothing",
    "executor/batch.py Batch._time_left: max(0.0, self._end - time.monotonic()) -> max(-1.0, self._end - time.monotonic())": "equivalent: a wait of less than nothing is a wait of nothing",
    "executor/resolution.py Meaning._checked: :100 -> :101": "how much of a name a text repeats",
    "executor/threads.py -: os.register_at_fork(after_in_child=_after_fork) -> pass": "killed by `test_a_forked_process_and_the_end_of_a_program_work`, whose program is a process of its own and runs without the change here",
    "executor/threads.py _Worker._next: self in _free -> self not in _free": "a race: the thread is taken in the moment in which it gives up waiting",
    "executor/threads.py deeper: _depth.get() + 1 -> _depth.get() - 1": "equivalent: a depth is only a key, and counted downwards there is still one for each",
    "history/pairing.py needs_no_repair: loose = False -> loose = True": "equivalent but for speed: the closer look finds nothing either",
    "run/event_stream.py _collected: 'messages' in own -> 'messages' not in own": "the events of runs are tested by `tests/compositions` and the contract, which are not asked here",
    "run/output.py RunOutput.message: self._position + len(self._handed_out) -> self._position - len(self._handed_out)": "killed since by `test_messages_say_where_they_stand`",
    "turn/constructor.py names_of: info.alias or field -> info.alias and field": "killed since by `test_the_name_that_type_checkers_know_comes_first`",
}

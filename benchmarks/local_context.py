"""The embedded local model beyond its window: `python -m benchmarks.local_context [--runs 10]`. Prints a line for each run.

A window of 4,096 tokens; a tool that gives files of some 250 tokens, each with one number; 20 questions, each for the number of another
file; then the question for the third one again. Each run has other numbers. Without `compact=` and with it it is the same conversation.
Needs the extra `local`; the model computes on this machine for some minutes a run.
"""

import argparse
import json
import random
import time
from typing import Any, get_args

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langchain_autotools import ChatLocal, new_messages, stop_reason
from langchain_autotools.messages.run_messages import StopReason

FILES, WINDOW, ASKED_AGAIN = 20, 4096, 3
RULES = "Call the tool once. Then answer from its result in one sentence, without another call."
FILLER = "It says nothing else of importance about the weather of the coast. "


def asked(seed: int, files: int, *, compact: bool) -> dict[str, Any]:
    """Return what a conversation came to.

    Args:
        seed: Draws the numbers.
        files: How many files are read.
        compact: Whether `compact=` is on.
    """
    draw = random.Random(seed)
    numbers = {f"f{number:02d}.txt": draw.randrange(1000, 10_000) for number in range(1, files + 1)}

    def read_file(name: str) -> str:
        """Read a text file."""
        return FILLER * 14 + f"The number in {name} is {numbers[name]}."

    model = ChatLocal(
        tools=[read_file], context_size=WINDOW, context_window=WINDOW, max_tokens=80, max_turns=3, compact=compact, show_progress=False
    )
    history: list[BaseMessage] = [SystemMessage(RULES)]
    right, reasons, began = 0, list[str](), time.monotonic()
    for name, number in [*numbers.items(), (again := f"f{min(ASKED_AGAIN, files):02d}.txt", numbers[again])]:
        history.append(HumanMessage(f"What is the number in {name}?"))
        try:
            message = model.invoke(history)
        except Exception as error:
            reasons.append(type(error).__name__)
            break
        history += (new := new_messages(message))
        reasons.append(str(stop_reason(message)))
        is_right = str(number) in new[-1].text
        calls = [call["name"] for one in new if isinstance(one, AIMessage) for call in one.tool_calls]
        if len(reasons) > files:
            last = {"asked again": is_right, "with": calls}
            break
        right += is_right
        if reasons[-1] == "context_window":
            break
    else:
        last = {}
    answered = min(len(reasons), files) - (reasons[-1] not in get_args(StopReason))  # not the one that was refused
    ended = {"right": right, "of": answered, "last end": reasons[-1], "seconds": round(time.monotonic() - began)}
    return {"seed": seed, "compact": compact, **ended, **(last if len(reasons) > files else {"asked again": False})}


def main() -> None:
    """Print what each run came to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local_context", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--only", choices=["with", "without"])
    arguments = parser.parse_args()
    for seed in range(arguments.runs):
        for compact in (False, True):
            if arguments.only in (None, "with" if compact else "without"):
                print(json.dumps(asked(seed, arguments.files, compact=compact)), flush=True)


if __name__ == "__main__":
    main()

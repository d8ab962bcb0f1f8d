"""A fresh process to a constructed model, and to the first text, by wire: `python -m benchmarks.start [--rounds 7]`. Prints a table.

The vendor's SDK, LangChain's partner package and this package take turns; a figure is the least CPU time of the rounds. An
installed package has its bytecode beside it: here that is written by a first round, which does not count, into a folder of its own.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from typing import Any

from .__main__ import server

_OURS = "from langchain_autotools import {name} as C; c = C(model='text-5', {arguments}); text = lambda: c.stream('hello')"
_PARTNER = "from {package} import {name} as C; c = C(model='text-5', {arguments}); text = lambda: c.stream('hello')"
_HELLO = "[{'role': 'user', 'content': 'hello'}]"


def _both(package: str, name: str, arguments: str, partners: str = "") -> dict[str, str]:
    partner = _PARTNER.format(package=package, name=name, arguments=partners or arguments)
    return {"partner package": partner, "autotools": _OURS.format(name=name, arguments=arguments)}


def peers(port: int) -> dict[str, dict[str, str]]:
    """Return the code of each peer by wire: it makes the model or client, and defines `text`, which asks for a text."""
    url = f"http://127.0.0.1:{port}"
    keys, v1 = f"api_key='x', base_url='{url}'", f"api_key='x', base_url='{url}/v1'"
    chat = f"c.chat.completions.create(model='text-5', messages={_HELLO}, stream=True)"
    messages = f"c.messages.create(model='text-5', max_tokens=9, messages={_HELLO}, stream=True)"
    options = f"http_options=dict(base_url='{url}', api_version='v1beta')"
    return {
        "Chat completions": {
            "SDK": f"from openai import OpenAI; c = OpenAI({v1}); text = lambda: {chat}",
            **_both("langchain_openai", "ChatOpenAI", v1),
        },
        "Anthropic": {
            "SDK": f"from anthropic import Anthropic; c = Anthropic({keys}); text = lambda: {messages}",
            **_both("langchain_anthropic", "ChatAnthropic", keys),
        },
        "Responses": {
            "SDK": f"from openai import OpenAI; c = OpenAI({v1}); "
            "text = lambda: c.responses.create(model='text-5', input='hello', stream=True)",
            **_both("langchain_openai", "ChatOpenAI", f"{v1}, use_responses_api=True"),
        },
        "Google": {
            "SDK": f"from google import genai; c = genai.Client(api_key='x', {options}); "
            "text = lambda: c.models.generate_content_stream(model='text-5', contents='hello')",
            **_both("langchain_google_genai", "ChatGoogleGenerativeAI", keys),
        },
        "Ollama": {
            "SDK": f"from ollama import Client; c = Client('{url}'); text = lambda: c.chat('text-5', {_HELLO}, stream=True)",
            **_both("langchain_ollama", "ChatOllama", f"base_url='{url}'"),
        },
    }


_PROGRAM = """
import time
{code}
made = time.process_time()
chunks = iter(text())
any("word" in str(chunk) for chunk in chunks)
print(made, time.process_time())
"""


def _taken(code: str, environment: dict[str, str]) -> tuple[float, float]:
    """Return the CPU milliseconds of a fresh process to its model and to its first text."""
    command = [sys.executable, "-c", _PROGRAM.format(code=code)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{code} failed:\n{done.stderr[-2000:]}")
    made, first = map(float, done.stdout.split())
    return made * 1e3, first * 1e3


def measure(port: int, rounds: int) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the least CPU milliseconds to the model and to its first text, by wire and peer."""
    codes = peers(port)
    least: dict[str, dict[str, tuple[float, float]]] = {wire: {} for wire in codes}
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for number in range(rounds + 1):
            for wire, name, code in ((wire, name, code) for wire, several in codes.items() for name, code in several.items()):
                taken = _taken(code, environment)
                known = least[wire].get(name, taken) if number > 1 else taken
                least[wire][name] = (min(known[0], taken[0]), min(known[1], taken[1]))
    return least


def table(figures: dict[str, dict[str, tuple[float, float]]]) -> None:
    """Print the figures."""
    print("| wire, model without tools | | SDK | partner package | autotools | of the partner's |\n|---|---|---|---|---|---|")
    for wire, costs in figures.items():
        for column, what in enumerate(("to the model", "to the first text")):
            sdk, partner, ours = (costs[name][column] for name in ("SDK", "partner package", "autotools"))
            print(f"| {wire} | {what} | {sdk:,.0f} | {partner:,.0f} | {ours:,.0f} | {ours / partner:.2f} |", flush=True)


def main(arguments: Any = None) -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args(arguments)
    with server() as port:
        table(measure(port, options.rounds))


if __name__ == "__main__":
    main()

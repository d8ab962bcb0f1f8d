"""The program: arguments, models by name, errors of one line, exit codes; over real HTTP and in real processes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from langchain_autotools.cli import main
from langchain_autotools.cli.commands import open_model
from langchain_autotools.providers.known import PROVIDERS
from tests.support.http_server import Gate
from tests.support.openai_server import OpenAIServer
from tests.support.programs import interrupt
from tests.support.script import Call, Failure, Turn
from tests.support.terminals import piped_in

REPOSITORY = Path(__file__).parents[3]
FAKE = REPOSITORY / "tests" / "providers" / "local" / "fake"
QUESTION = "How warm is it in Paris and in Rome?"
TWO_CITIES = [
    Turn("Let me look.", calls=[Call("get_temperature", {"city": "Paris"}, "call_1"), Call("get_temperature", {"city": "Rome"}, "call_2")]),
    Turn("Paris 18, Rome 24."),
]


@pytest.fixture(autouse=True)
def nothing_is_piped_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Standard input is empty, as in a program that gives none."""
    with piped_in(monkeypatch, ""):
        yield


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider's key is set."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-key")


def serve(monkeypatch: pytest.MonkeyPatch, server: OpenAIServer) -> None:
    """Let the provider's address be the server's."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)


def environment(**more: str) -> dict[str, str]:
    """The environment of a program that runs from this checkout, in an encoding of its own."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(FAKE)]), "PYTHONIOENCODING": "utf-8", **more}


def run(*arguments: str, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    """`python -m langchain_autotools` with these arguments."""
    command = [sys.executable, "-m", "langchain_autotools", *arguments]
    return subprocess.run(command, input=stdin, env=environment(**more), capture_output=True, text=True, encoding="utf-8", timeout=120)


def events(text: str) -> list[dict[str, Any]]:
    """One event a line."""
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.usefixtures("key")
def test_a_question_is_answered_with_the_built_in_tools(monkeypatch, capsys):
    """The answer alone is output; the model and why it was taken, the tools, calls, results and usage are beside it; exit code 0."""
    with OpenAIServer(TWO_CITIES) as server:
        serve(monkeypatch, server)
        assert main(["chat", QUESTION]) == 0
    shown = capsys.readouterr()
    assert shown.out == "Let me look.\nParis 18, Rome 24.\n"
    lines = shown.err.splitlines()
    assert lines[0].startswith("model: openai:") and "OPENAI_API_KEY is set" in lines[0]
    assert "get_temperature, calculate, get_current_time" in lines[1]
    paris, rome = (f'get_temperature(city="{city}")' for city in ("Paris", "Rome"))
    assert {f"→ {paris}", f"→ {rome}", f"← {paris}: 18 °C", f"← {rome}: 24 °C"} <= set(lines)
    assert lines[-1] == "[2 turns · 22 tokens in, 14 out]"


@pytest.mark.usefixtures("key")
def test_options_reach_the_request(monkeypatch, capsys):
    """Model, system message, temperature, reply length and limits are what was asked for; no reason is given for a model by name."""
    with OpenAIServer(TWO_CITIES) as server:
        serve(monkeypatch, server)
        options = ["--model", "openai:gpt-4o", "--system", "Be brief.", "--temperature", "0.5", "--max-tokens", "99", "--max-turns", "1"]
        assert main(["chat", QUESTION, *options]) == 0
    request = server.requests[0]
    assert (request["model"], request["temperature"], request["max_completion_tokens"]) == ("gpt-4o", 0.5, 99)
    assert request["messages"][0]["content"] == "Be brief."
    assert capsys.readouterr().err.splitlines()[0] == "model: openai:gpt-4o"
    assert server.requests[1]["tool_choice"] == "none"


@pytest.mark.usefixtures("key")
def test_own_tools_and_no_tools(monkeypatch, tmp_path, capsys):
    """`--tools` replaces the built-in ones; `--no-tools` declares none."""
    file = tmp_path / "own.py"
    file.write_text('def get_tide(port: str) -> str:\n    "Tide at a port."\n    return "high"\ntools = [get_tide]\n')
    with OpenAIServer([Turn(calls=[Call("get_tide", {"port": "Brest"})]), Turn("High."), Turn("Hi.")]) as server:
        serve(monkeypatch, server)
        assert main(["chat", "Tide?", "--tools", str(file)]) == 0
        assert main(["chat", "Hi!", "--no-tools"]) == 0
    assert [tool["function"]["name"] for tool in server.requests[0]["tools"]] == ["get_tide"]
    assert "tools" not in server.requests[2]
    shown = capsys.readouterr().err
    assert f"tools: get_tide (of {file})" in shown and shown.count("tools:") == 1 and "passed over" not in shown


@pytest.mark.usefixtures("key")
def test_what_a_file_of_tools_holds_and_does_not_offer_is_told(monkeypatch, tmp_path, capsys):
    """One line names what was loaded and from where, one what was passed over and why; with `--json` neither is among the events."""
    file = tmp_path / "mixed.py"
    tide = '@tool\ndef get_tide(port: str) -> str:\n    "Tide."\n    return "high"\n'
    file.write_text(f"from langchain_core.tools import tool\n\n{tide}\ndef round_up(number: float) -> int:\n    return 1\n")
    with OpenAIServer([Turn("Hi."), Turn("Hi.")]) as server:
        serve(monkeypatch, server)
        assert main(["chat", "Hi", "-T", str(file)]) == 0
        lines = capsys.readouterr().err.splitlines()
        assert main(["chat", "Hi", "-T", str(file), "--json"]) == 0
        assert capsys.readouterr().err == ""
    assert lines[1:3] == [
        f"tools: get_tide (of {file})",
        f"passed over: round_up (a plain function: name it with -T {file}:round_up, or decorate it with @tool)",
    ]
    assert [tool["function"]["name"] for tool in server.requests[0]["tools"]] == ["get_tide"]


@pytest.mark.usefixtures("key")
def test_json_prints_events_only(monkeypatch, capsys):
    """With `--json` every line of the output is an event, from the first text to `done`."""
    with OpenAIServer(TWO_CITIES) as server:
        serve(monkeypatch, server)
        assert main(["chat", QUESTION, "--json"]) == 0
    shown = capsys.readouterr()
    kinds = [event["type"] for event in events(shown.out)]
    assert kinds[0] == "text" and kinds[-1] == "done" and shown.err == ""
    assert kinds.count("tool_result") == 2 and kinds.count("message") == 4


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("as_json", [False, True])
def test_a_vendors_error_is_one_line_and_a_failure(monkeypatch, capsys, as_json):
    """A refused request: one line on standard error, or one `error` event; exit code 1, no traceback, no key."""
    with OpenAIServer([Failure(401, "Incorrect API key\nprovided.", "invalid_request_error", "invalid_api_key")]) as server:
        serve(monkeypatch, server)
        assert main(["chat", "Hi", *(["--json"] if as_json else [])]) == 1
    shown = capsys.readouterr()
    # The message itself, or of SDKs before 3 the whole body as Python writes it.
    message = "Incorrect API key provided." if int(version("openai").split(".")[0]) > 2 else r"Incorrect API key\nprovided."
    if as_json:
        (event,) = events(shown.out)
        assert event["type"] == "error" and message in event["message"]
    else:
        error = shown.err.splitlines()[-1]
        assert shown.err.count("error: ") == 1 and error.startswith("error: ") and message in error
    assert "Traceback" not in shown.out + shown.err and "sk-secret" not in shown.out + shown.err


@pytest.mark.usefixtures("key")
def test_a_failure_in_a_later_turn_keeps_the_earlier_events(monkeypatch, capsys):
    """What was completed is told before the `error` event."""
    with OpenAIServer([TWO_CITIES[0], Failure(400, "Too long.", "invalid_request_error")]) as server:
        serve(monkeypatch, server)
        assert main(["chat", QUESTION, "--json"]) == 1
    kinds = [event["type"] for event in events(capsys.readouterr().out)]
    assert kinds.count("message") == 3 and kinds[-1] == "error" and "done" not in kinds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["modles"], "there is no command 'modles': did you mean models?"),
        (["chat", "--temperature", "warm"], "argument --temperature: must be a number, not 'warm' (see `langchain-autotools chat --help`)"),
        (["chat", "--temperature", "nan"], "must be a number, not 'nan'"),
        (["chat", "--max-turns", "0"], "argument --max-turns: must be a whole number above 0, not '0'"),
        (["chat", "--max-tokens", "1.5"], "must be a whole number, not '1.5'"),
        (["chat", "--no-tools", "--tools", "a:b"], "not allowed with argument"),
        (["chat", "--colour", "red"], "chat has no option --colour (see `langchain-autotools chat --help`)"),
        (
            ["chat", "--tmperature", "1", "Hi"],
            "chat has no option --tmperature: did you mean --temperature? (see `langchain-autotools chat --h",
        ),
        (["--tmperature=1", "Hi"], "chat has no option --tmperature: did you mean --temperature?"),
        (["models", "--provider", "openai", "--josn"], "models has no option --provider"),
        (["chat", "How", "warm", "is it?"], "chat takes no further word 'warm': put the question in quotes"),
        (["models", "openai", "\x1b[2J"], r"models takes no further word '\x1b[2J'"),
    ],
)
@pytest.mark.further
def test_wrong_use_is_one_line_and_code_2(capsys, arguments, message):
    """A wrong command line says what is wrong and where help is; with `--json` as an event."""
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error and "--help" in error and error.count("\n") == 1
    assert main([*arguments, "--json"]) == 2
    assert message in events(capsys.readouterr().out)[0]["message"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Hi", "--model", "nowhere:x"], "no such provider: 'nowhere'; did you mean"),
        (["Hi", "--tools", "nothing"], "expected module:attribute"),
        (["Hi", "--model", "local:/no/such.gguf"], r"model_path: /no/such.gguf cannot be read"),
        (["Hi", "--temperature", "-1"], "temperature must be 0 or more, not -1.0"),
        (["Hi", "-o", "tmperature", "1"], "did you mean 'temperature'?"),
        (["Hi", "--base-url", "localhost:1"], "base_url is no address"),
        ([" "], "The prompt is empty"),
    ],
)
@pytest.mark.usefixtures("key")
@pytest.mark.further
def test_what_cannot_work_is_one_line_and_code_2(capsys, arguments, message):
    """Unknown models, tools, files and impossible values are named in one line, before anything is an answer."""
    assert main(["chat", *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err and shown.err.count("error: ") == 1 and shown.err.splitlines()[-1].startswith("error: ")
    assert shown.out == ""


def test_a_question_may_begin_with_the_options(monkeypatch, capsys):
    """`-m gpt-5 hi` means what `chat -m gpt-5 hi` means."""
    with OpenAIServer([Turn("Hello.")] * 2) as server:
        serve(monkeypatch, server)
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        assert main(["-m", "gpt-5", "hi"]) == main(["chat", "-m", "gpt-5", "hi"]) == 0
        assert server.exchanges[0].json == server.exchanges[1].json
    assert capsys.readouterr().out == "Hello.\nHello.\n"


def test_the_small_model_gets_the_tools_it_can_use(monkeypatch):
    """The default local model is offered fewer built-in tools than others; a file of the user's own gets all."""
    assert [tool.name for tool in open_model("local", None, {}).built_in] == ["get_temperature"]
    assert len(open_model("local:own.gguf", None, {}).built_in) == 3
    monkeypatch.setenv("LANGCHAIN_AUTOTOOLS_MODEL_PATH", "own.gguf")
    assert len(open_model("local", None, {}).built_in) == 3


@pytest.mark.usefixtures("key")
def test_a_model_may_be_named_alone():
    """As of `init_chat_model`, where its name tells the provider."""
    assert open_model("gpt-4o", None, {}).name == open_model("openai:gpt-4o", None, {}).name == "openai:gpt-4o"


def test_without_a_key_and_without_a_local_model_it_says_what_to_install(monkeypatch, capsys):
    """No provider: one line names the keys and the install command."""
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    assert main(["chat", "Hi"]) == 2
    error = capsys.readouterr().err
    assert "extra `local` (from a checkout: pip install '.[local]')" in error and "OPENAI_API_KEY" in error and error.count("\n") == 1
    assert "-m ollama:MODEL" in error and "--base-url URL" in error


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google", "mistral"])
@pytest.mark.parametrize("as_json", [False, True])
def test_a_provider_without_a_key_says_how_to_give_one(capsys, provider, as_json):
    """The variable, and the option of the command line."""
    assert main(["chat", "Hi", "-m", provider, *(["--json"] if as_json else [])]) == 2
    shown = capsys.readouterr()
    assert as_json or shown.out == ""
    error = events(shown.out)[-1]["message"] if as_json else shown.err
    assert "_API_KEY" in error and "(on the command line: -o api_key VALUE)" in error


def test_a_bare_call_prints_the_help(capsys):
    """Its commands, as output."""
    assert main([]) == 0
    shown = capsys.readouterr()
    assert "chat " in shown.out and "models " in shown.out and shown.err == ""


def test_help_names_the_providers_and_the_version_is_told(capsys):
    """`--help` and `--version` end with code 0."""
    for arguments in (["chat", "--help"], ["--version"]):
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert end.value.code == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in PROVIDERS) and "langchain-autotools" in shown


@pytest.mark.further
def test_the_local_model_is_the_default_without_keys(tmp_path):
    """The whole program on the local model (a stand-in): named with its reason, tools run, no server is left behind."""
    file = tmp_path / "tiny.gguf"
    file.write_bytes(b"GGUF")
    done = run("chat", QUESTION, LANGCHAIN_AUTOTOOLS_MODEL_PATH=str(file))
    assert (done.returncode, done.stdout) == (0, "It is 18 °C and 24 °C.\n")
    lines = done.stderr.splitlines()
    assert lines[0] == "model: local:tiny (no provider's key is set: the embedded local model)"
    assert lines[-1] == "[2 turns · 20 tokens in, 10 out]"


@pytest.mark.parametrize(
    ("arguments", "piped", "question"),
    [
        (["-"], "How warm is it\nin Rome?", "How warm is it\nin Rome?"),
        ([], "How warm is it\nin Rome?\n", "How warm is it\nin Rome?\n"),
        (["Summarise this."], "One.\nTwo.\n", "One.\nTwo.\n\nSummarise this."),
        (["Summarise this."], "  \n", "Summarise this."),
    ],
)
@pytest.mark.usefixtures("key")
def test_what_is_piped_in_joins_the_prompt(monkeypatch, arguments, piped, question):
    """`cat file | ... chat "Summarise this."`: the text comes before the prompt; without a prompt, or with `-`, it is the prompt."""
    with piped_in(monkeypatch, piped), OpenAIServer([Turn("Fine.")]) as server:
        serve(monkeypatch, server)
        assert main(["chat", "--no-tools", *arguments]) == 0
    assert server.messages[0] == [{"role": "user", "content": question}]


@pytest.mark.usefixtures("key")
def test_nothing_piped_in_and_no_prompt_is_an_error(capsys):
    """Without a terminal there is no session to wait for."""
    assert main(["chat"]) == 2
    assert "The prompt is empty" in capsys.readouterr().err


def test_a_conversation_is_continued_from_its_file(monkeypatch, tmp_path):
    """`--history FILE` keeps the conversation, calls and results included, for its owner only; without it nothing is stored."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-key")
    monkeypatch.chdir(tmp_path)
    with OpenAIServer([*TWO_CITIES, Turn("In Rome."), Turn("Anew.")]) as server:
        serve(monkeypatch, server)
        assert main(["chat", QUESTION, "--history", "talk.json", "-s", "Be brief."]) == 0
        assert main(["chat", "Where is it warmer?", "--history", "talk.json"]) == 0
        assert main(["chat", "Hello"]) == 0
    roles = ["system", "user", "assistant", "tool", "tool", "assistant", "user"]
    assert [message["role"] for message in server.messages[2]] == roles
    assert len(server.messages[3]) == 1 and [path.name for path in tmp_path.iterdir()] == ["talk.json"]
    assert (tmp_path / "talk.json").stat().st_mode & 0o077 == 0 and "sk-secret" not in (tmp_path / "talk.json").read_text()
    assert [entry["type"] for entry in json.loads((tmp_path / "talk.json").read_text())][-2:] == ["human", "ai"]


@pytest.mark.parametrize(
    ("content", "message"), [("{}", "holds no conversation"), ("[1]", "holds no conversation"), (None, "no file can be written")]
)
@pytest.mark.usefixtures("key")
def test_a_history_file_that_cannot_work_is_refused_before_the_request(capsys, tmp_path, content, message):
    """A file of something else is not overwritten, and a folder is none."""
    file = tmp_path / "talk.json"
    if content is None:
        file.mkdir()
    else:
        file.write_text(content)
    assert main(["chat", "Hi", "--history", str(file)]) == 2
    assert message in capsys.readouterr().err
    assert content is None or file.read_text() == content


def test_short_options_and_the_address(monkeypatch, capsys, tmp_path):
    """`-m`, `-s`, `-T` and `-o` are what users of other command lines expect; `--base-url` names the server."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-key")
    file = tmp_path / "own.py"
    file.write_text('def get_tide(port: str) -> str:\n    "Tide at a port."\n    return "high"\n')
    with OpenAIServer([Turn("High.")]) as server:
        own = ["-m", "openai:gpt-4o", "-s", "Be brief.", "-T", f"{file}:get_tide", "-o", "seed", "7", "-o", "service_tier", "flex"]
        assert main(["chat", "Tide?", "--base-url", server.url, *own]) == 0
    (request,) = server.requests
    assert (request["model"], request["seed"], request["service_tier"]) == ("gpt-4o", 7, "flex")
    assert request["messages"][0]["content"] == "Be brief." and request["tools"][0]["function"]["name"] == "get_tide"
    assert capsys.readouterr().out == "High.\n"


@pytest.mark.further
def test_a_reader_that_leaves_ends_the_program_quietly(tmp_path):
    """`... | head -1`: no traceback, no message."""
    gate = Gate()
    with OpenAIServer([Turn("Once upon a time there was a king", holds={2: gate})]) as server:
        command = [sys.executable, "-m", "langchain_autotools", "chat", "A story!", "--no-tools", "--json"]
        more = environment(OPENAI_API_KEY="key", OPENAI_BASE_URL=server.url)
        with subprocess.Popen(command, env=more, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
            assert json.loads(program.stdout.readline())["type"] == "text"
            program.stdout.close()
            gate.open()
            errors = program.stderr.read()
            assert program.wait(60) == 141 and errors == b""


@pytest.mark.further
def test_an_interrupt_ends_a_single_question_with_code_130(tmp_path):
    """Ctrl-C while the answer is awaited: quiet, code 130, and the connection to the server ends."""
    gate = Gate()
    with OpenAIServer([Turn("Once upon a time", holds={2: gate})]) as server:
        command = [sys.executable, "-m", "langchain_autotools", "chat", "A story!", "--no-tools"]
        more = environment(OPENAI_API_KEY="key", OPENAI_BASE_URL=server.url)
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, env=more, **streams) as program:
            try:
                program.stderr.readline()
                program.stdout.read(1)
                interrupt(program)
                _, errors = program.communicate(timeout=60)
            finally:
                program.kill()
                gate.open()
    assert program.returncode == 130 and errors == b"(interrupted)\n"


@pytest.mark.further
def test_an_output_that_cannot_show_a_character_shows_another(tmp_path):
    """In a plain ASCII terminal degrees and arrows become question marks, not an error."""
    file = tmp_path / "tiny.gguf"
    file.write_bytes(b"GGUF")
    done = run("chat", QUESTION, "--model", f"local:{file}", PYTHONIOENCODING="ascii")
    assert (done.returncode, "error" in done.stderr) == (0, False)
    assert "It is 18 ?C and 24 ?C." in done.stdout

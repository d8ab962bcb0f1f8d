"""Ctrl-C while the program starts: one line, exit code 130, no traceback."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from langchain_autotools.cli import main

REPOSITORY = Path(__file__).parents[3]


def test_an_interrupt_while_the_program_is_imported_is_one_line(tmp_path):
    """A real process, held in the import of its first library."""
    (tmp_path / "langchain_core").mkdir()
    (tmp_path / "langchain_core" / "__init__.py").write_text("import sys\nprint('importing', flush=True)\nsys.stdin.read()\n")
    path = os.pathsep.join([str(tmp_path), str(REPOSITORY)])
    command = [sys.executable, "-c", "import sys; from langchain_autotools.cli import main; sys.exit(main(['chat', 'Hi']))"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, **pipes) as program:
        assert program.stdout.readline() == b"importing\n"
        program.send_signal(signal.SIGINT)
        program.stdin.close()  # a signal between Python's last look and the read is noticed when the read ends
        assert program.stderr.read() == b"(interrupted)\n"
        assert program.wait(60) == 130


@pytest.mark.parametrize("as_json", [False, True])
def test_an_interrupt_while_tools_are_loaded_is_one_line(tmp_path, capsys, as_json):
    """With `--json` an `error` event."""
    file = tmp_path / "slow_tools.py"
    file.write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n")
    assert main(["chat", "Hi", "-T", str(file), *(["--json"] if as_json else [])]) == 130
    shown = capsys.readouterr()
    line = '{"type": "error", "error": "KeyboardInterrupt", "message": "interrupted"}\n'
    assert (shown.out, shown.err) == ((line, "") if as_json else ("", "(interrupted)\n"))

"""tests/stranger.sh, which is run by hand: it can be read, and what it takes out of README is what README tells to do."""

import subprocess

from tests.support.pages import REPOSITORY, fences

SCRIPT = REPOSITORY / "tests" / "stranger.sh"


def bash(*arguments: str) -> str:
    """What bash prints."""
    return subprocess.run(["bash", *arguments], check=True, capture_output=True, text=True, timeout=60).stdout


def test_it_is_a_script_for_bash() -> None:
    """It parses, and so does the script that starts it; without arguments it says how it is used."""
    for script in (SCRIPT, REPOSITORY / ".ci" / "world"):
        assert bash("-n", str(script)) == ""
    done = subprocess.run(["bash", str(SCRIPT)], capture_output=True, text=True)
    assert done.returncode == 2 and "--figures" in done.stdout


def test_its_commands_are_those_of_the_readme() -> None:
    """The block without a key and that of the chat page, whole; of neither is there a copy in the script."""
    blocks = [text for language, text in fences(REPOSITORY / "README.md") if language == "sh"]
    wanted = [text for name in ("local_weights.py", "chat_app.py") for text in blocks if f"examples/{name}" in text]
    assert len(wanted) == 2 and bash(str(SCRIPT), "--commands") == "".join(wanted)
    script = SCRIPT.read_text(encoding="utf-8")
    assert not [line for text in wanted for line in text.splitlines() if line in script]

"""Use a running chat page as a stranger does, in four windows: python -m tests.stranger_page ADDRESS FOLDER; tests/stranger.sh."""

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

WINDOWS = {"desktop": {"viewport": {"width": 1280, "height": 800}}, "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True}}
SCHEMES = ("light", "dark")
PATIENCE = 300_000
"""Milliseconds: a small model on a busy machine."""


def main(address: str, folder: Path) -> int:
    """Try every step in every window; returns the exit code."""
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    wait_for(address)
    passed, steps = 0, 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"], timeout=60_000)
        for window, settings in WINDOWS.items():
            for scheme in SCHEMES:
                visit = Visit(browser.new_context(**settings, color_scheme=scheme), address, folder / f"page_{window}_{scheme}")
                for step in visit.steps():
                    steps += 1
                    passed += tried(step, f"{window}, {scheme}")
        browser.close()
    print(f"{passed} of {steps} steps in {len(WINDOWS) * len(SCHEMES)} windows")
    return 0 if passed == steps else 1


def wait_for(address: str) -> None:
    """Wait until the page is served."""
    until = time.monotonic() + PATIENCE / 1000
    while True:
        try:
            urlopen(address, timeout=5).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


def tried(step: Callable[[], None], where: str) -> bool:
    """Take a step; says why it failed."""
    try:
        step()
    except Exception as error:
        print(f"{where}: {step.__doc__} FAILED: {error}")
        return False
    print(f"{where}: {step.__doc__}")
    return True


class Visit:
    """A new conversation in a fresh browser.

    Args:
        context: The browser's context.
        address: Where the page is.
        pictures: The beginning of the screenshots' paths.
    """

    def __init__(self, context: Any, address: str, pictures: Path) -> None:
        self.page, self.address, self.pictures = context.new_page(), address, pictures
        self.page.set_default_timeout(PATIENCE)
        self.errors: list[str] = []
        self.loaded: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        context.on("response", lambda response: self.loaded.append(response.url))

    def steps(self) -> list[Callable[[], None]]:
        """What a stranger does, in order."""
        return [self.open, self.ask, self.open_call, self.approve, self.reload, self.end]

    def open(self) -> None:
        """The page opens, and its box takes a message."""
        self.page.goto(f"{self.address}?chat={self.pictures.name}")
        self.box.click()
        self.look("1_empty")

    def ask(self) -> None:
        """A question is answered from the tool; mails that nobody wants, which this model likes to offer, are rejected."""
        self.say("How warm is it in Rome?")
        self.wait_until_waiting_or_done()
        for _ in range(3):
            if not self.button("Reject").count():
                break
            self.look("2_unwanted")
            self.button("Reject").first.click()
            self.page.wait_for_timeout(2_000)
            self.wait_until_waiting_or_done()
        assert "21 °C" in self.said, self.said
        self.look("2_answered")

    def open_call(self) -> None:
        """The panel of a call opens."""
        self.page.get_by_role("button", name="get_temperature").first.click()
        self.look("3_call")

    def approve(self) -> None:
        """A mail waits for its approval, and is sent."""
        self.say("Send a mail to Anna with the text: Dinner is at eight.")
        self.wait_until_waiting_or_done()
        assert self.button("Approve").count(), self.said
        self.look("4_waiting")
        self.button("Approve").first.click()
        self.page.get_by_label("chatbot conversation").get_by_text("Sent to").last.wait_for()
        self.wait_until_waiting_or_done()
        self.look("5_sent")

    def reload(self) -> None:
        """A reload shows the conversation."""
        self.page.reload()
        self.page.get_by_label("chatbot conversation").get_by_text("How warm is it in Rome?").last.wait_for()
        self.look("6_reloaded")

    def end(self) -> None:
        """No error of a script, nothing from elsewhere, nothing wider than the window."""
        assert self.errors == []
        assert [url for url in self.loaded if not url.startswith((self.address, "data:", "blob:"))] == []
        assert self.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        self.page.context.close()

    @property
    def box(self) -> Any:
        """Where messages are typed."""
        return self.page.get_by_placeholder("Message")

    @property
    def said(self) -> str:
        """What is to be read of the conversation."""
        return str(self.page.get_by_label("chatbot conversation").inner_text())

    def button(self, name: str) -> Any:
        """The buttons of this name."""
        return self.page.get_by_role("button", name=name)

    def say(self, text: str) -> None:
        """Type a message, and Enter; it comes to be seen."""
        self.box.fill(text)
        self.box.press("Enter")
        self.page.get_by_label("chatbot conversation").get_by_text(text).last.wait_for()

    def wait_until_waiting_or_done(self) -> None:
        """Wait until no run goes on."""
        self.page.wait_for_timeout(1_000)
        self.page.locator("button.stop-button").wait_for(state="detached")
        self.page.wait_for_timeout(1_000)

    def look(self, name: str) -> None:
        """Keep a picture."""
        self.page.wait_for_timeout(500)
        self.page.screenshot(path=f"{self.pictures}_{name}.png", animations="disabled")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))

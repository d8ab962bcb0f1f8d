"""A page as its user has it."""

import os
from pathlib import Path
from typing import Any

SECONDS = 20


class Visited:
    """A page in the browser.

    Args:
        page: The browser's page.
        scheme: `light` or `dark`.
    """

    def __init__(self, page: Any, scheme: str = "light") -> None:
        self.page = page
        self.scheme = scheme

    def press(self, name: str) -> None:
        """Press a button."""
        self.page.get_by_role("button", name=name, exact=True).click()

    def sees(self, *texts: str) -> None:
        """These texts come to be on the page."""
        for text in texts:
            self.page.get_by_text(text, exact=True).last.wait_for(timeout=SECONDS * 1000)

    def look(self, name: str) -> None:
        """Keep a picture of what is to be seen."""
        if folder := os.environ.get("SCREENSHOTS"):
            self.page.screenshot(path=str(Path(folder) / f"{name}_{self.scheme}.png"), animations="disabled")

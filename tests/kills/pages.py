"""`python -m tests.kills.pages [--kills 20]`: a browser's own EventSource over a conversation whose server is killed at random moments.

Every connection is cut after one event, as in tests/browser/test_reconnecting.py. Needs the extra `browser` and a Chromium. Prints JSON.
"""

import argparse
import json
import random
import signal
import tempfile
import time
from pathlib import Path

import httpx
from playwright.sync_api import sync_playwright

from tests.browser.conftest import CHROMIUM
from tests.browser.test_reconnecting import SERVER
from tests.support.served_program import ServedProgram, until

_LONGEST = 0.7  # seconds from a message to the kill


def pages(folder: Path, wanted: int, seed: int) -> dict[str, object]:
    """Send a message, kill the server while it answers, start it again; in the end the page shows what the conversation says."""
    (folder / "server.py").write_text(SERVER)
    chance, server = random.Random(seed), ServedProgram(["server.py", "{port}"], folder)
    ways = {signal.SIGKILL: 0, signal.SIGTERM: 0}
    server.start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=60_000)
        page = browser.new_page()
        page.goto(server.address)
        for number in range(wanted):
            httpx.post(f"{server.address}/say", params={"text": f"place {number}"}).raise_for_status()
            time.sleep(chance.uniform(0, _LONGEST))
            way = chance.choice(list(ways))
            server.end(way)
            ways[way] += 1
            server.start()

        def is_whole() -> bool:
            texts = httpx.get(f"{server.address}/texts").json()
            return len(texts) == 3 * wanted and texts == page.evaluate("[...texts.values()]")

        try:
            until(is_whole, 2.0 * wanted + 60)
        finally:
            told = httpx.get(f"{server.address}/texts").json()
            shown, seen = page.evaluate("[...texts.values()]"), page.evaluate("seen")
            browser.close()
            server.end(signal.SIGKILL)
    counted = {"killed": ways[signal.SIGKILL], "stopped": ways[signal.SIGTERM], "messages": len(told), "events": len(seen)}
    return {**counted, "discarded": seen.count("message_discarded"), "ended by the server": seen.count("done"), "shows all": shown == told}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.kills.pages")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(pages(Path(place), arguments.kills, arguments.seed)))

"""Label tickets on Dask, Ray or DBOS with two workers, one of which is killed half way and not restarted; print what came of it as JSON.

python -m tests.scale dask 10000
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.http_server import Exchange
from tests.support.openai_server import OpenAIServer
from tests.support.pages import REPOSITORY
from tests.support.script import Call, Turn


def reply(exchange: Exchange) -> Turn:
    """Ask for the label to be saved, then say that it is."""
    messages = exchange.json["messages"]
    (number,) = re.findall(r"ticket (\d+)", messages[0]["content"])
    time.sleep(0.01)  # a model takes its time: the worker that dies has runs under way
    if messages[-1]["role"] == "tool":
        return Turn(f"Ticket {number} is late.")
    return Turn("", [Call("save_label", {"ticket": int(number), "label": "late"})])


def saved(ledger: Path) -> Counter[str]:
    """How often the label of each ticket was saved."""
    return Counter(line.partition("\t")[0] for line in ledger.read_text().splitlines()) if ledger.exists() else Counter()


def kill_half_way(ledger: Path, tickets: int, kill: Callable[[], object]) -> threading.Thread:
    """Kill, once half of the tickets are labelled."""

    def wait() -> None:
        while len(saved(ledger)) < tickets // 2:
            time.sleep(0.05)
        kill()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def on_dask(ledger: Path, tickets: int) -> list[str]:
    """On two workers of Dask, programs that nobody starts again."""
    from dask.distributed import Client, LocalCluster

    from examples.scale.on_dask import label

    with LocalCluster(n_workers=0, dashboard_address=None) as cluster, Client(cluster) as client:
        command = [sys.executable, "-m", "dask", "worker", cluster.scheduler_address, "--no-nanny", "--nthreads", "8", "--no-dashboard"]
        with subprocess.Popen(command) as one, subprocess.Popen(command) as other:
            try:
                client.wait_for_workers(2, timeout=60)
                killing = kill_half_way(ledger, tickets, one.kill)
                texts: list[str] = label(client, tickets)
                killing.join(timeout=60)
                assert one.wait(timeout=60) == -signal.SIGKILL
                assert len(client.scheduler_info()["workers"]) == 1
                return texts
            finally:
                one.kill()
                other.kill()


def on_ray(ledger: Path, tickets: int) -> list[str]:
    """On two nodes of Ray beside an empty one for this program; the one that dies is not made anew."""
    import ray
    from ray.cluster_utils import Cluster

    from examples.scale.on_ray import label

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    one, _ = (cluster.add_node(num_cpus=2) for _ in range(2))
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        killing = kill_half_way(ledger, tickets, lambda: cluster.remove_node(one, allow_graceful=False))
        texts = label(tickets)
        killing.join(timeout=60)
        deadline = time.monotonic() + 60  # Ray takes note of it in its own time
        while (dead := [node["NodeID"] for node in ray.nodes() if not node["Alive"]]) != [one.node_id]:
            assert time.monotonic() < deadline, dead
            time.sleep(0.2)
        return texts
    finally:
        ray.shutdown()
        cluster.shutdown()


def on_dbos(ledger: Path, tickets: int) -> list[str]:
    """On two workers that share a PostgreSQL of Debian's package with this program."""
    from langchain_autotools.durable import shutdown
    from tests.support.postgres import postgres

    with postgres() as server:
        os.environ["DATABASE_URL"] = server.create("tickets")
        from examples.scale.on_dbos import label

        command = [sys.executable, str(REPOSITORY / "examples" / "scale" / "on_dbos.py"), "work"]
        with subprocess.Popen(command) as one, subprocess.Popen(command) as other:
            try:
                killing = kill_half_way(ledger, tickets, one.kill)
                texts = label(tickets)
                killing.join(timeout=60)
                assert one.wait(timeout=60) == -signal.SIGKILL
                assert other.poll() is None
                return texts
            finally:
                shutdown()
                one.kill()
                other.kill()


WAYS: dict[str, Callable[[Path, int], list[str]]] = {"dask": on_dask, "ray": on_ray, "dbos": on_dbos}


def labelled(way: str, tickets: int) -> dict[str, Any]:
    """What came of it: how many prompts were answered, in order; how many labels were saved, and how many of them again."""
    with tempfile.TemporaryDirectory() as folder, OpenAIServer(reply, rules=None) as server:
        ledger = Path(folder) / "labels.tsv"
        os.environ |= {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "key", "LEDGER": str(ledger), "RAY_USAGE_STATS_ENABLED": "0"}
        begun = time.monotonic()
        texts = WAYS[way](ledger, tickets)
        seconds, counts = time.monotonic() - begun, saved(ledger)
        return {
            "prompts": tickets,
            "answered in order": sum(text == f"Ticket {number} is late." for number, text in enumerate(texts)),
            "tickets labelled": len(counts),
            "labels saved again": sum(counts.values()) - len(counts),
            "requests": len(server.exchanges),
            "seconds": round(seconds),
        }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.scale")
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("tickets", type=int)
    asked = parser.parse_args()
    print(json.dumps(labelled(asked.way, asked.tickets)))

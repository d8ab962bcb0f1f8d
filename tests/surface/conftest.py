"""Our classes beside the partner packages': `pytest -m surface tests/surface`, with the releases of pins.txt."""

from importlib.util import find_spec

from tests.surface.packages import PACKAGES

collect_ignore_glob = [] if all(find_spec(name) for name in PACKAGES) else ["test_surface.py"]

"""A pytest plugin: hypothesis looks at the same few cases each time, and does not shrink what it finds."""

from hypothesis import HealthCheck, Phase, settings


def pytest_configure() -> None:
    """After conftest.py has loaded its own profile."""
    settings.register_profile(
        "mutation",
        deadline=None,
        derandomize=True,
        database=None,
        max_examples=12,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("mutation")

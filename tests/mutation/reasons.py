"""Why a mutant may live: by what `Mutant.key` says of it."""

EQUIVALENT: dict[str, str] = {}
"""Those that do the same as the code that they were made from."""

ACCEPTED: dict[str, str] = {}
"""Those that do not, and that no test is meant to tell."""

REASONS = {**{key: f"equivalent: {reason}" for key, reason in EQUIVALENT.items()}, **ACCEPTED}

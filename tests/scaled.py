"""How many examples a property has, where it is not the usual number."""

from __future__ import annotations

from hypothesis import settings

_USUAL = 100


def scaled(examples: int) -> int:
    """So many where a property has a hundred; in proportion where the profile that is loaded gives it more or fewer."""
    assert settings.default is not None
    return max(1, examples * settings.default.max_examples // _USUAL)

"""AMQ Protocol 10.3 (2006): a client for trio, over the codec and engine of 0-9-1.

This package adds the parts in which 10.3 differs from 0-9-1. ``V10_3`` in ``profile`` is the profile for
``amqp091.engine.Engine``, for both roles. The modules of this folder use no clock, socket, trio or logger. The public names are
those of ``client``, which is imported when one of them is first used. ``C`` with a number is a line of the class reference of
10.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .client import *  # noqa: F403 - all of its names, which it lists
else:
    from trio_amqp10.core.lazy_names import names_of

    __getattr__, __dir__ = names_of(__name__, ".client")

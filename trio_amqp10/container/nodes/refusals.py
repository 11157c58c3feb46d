"""The answers of a node to arrivals, where the sender may be gone or waits for none.

Knows arrivals; knows no node.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from trio_amqp10.errors import LocalProtocolError

if TYPE_CHECKING:
    from .node import Arrival

__all__ = ["accept", "refuse", "release"]

_log = logging.getLogger("trio_amqp10.container")


def accept(arrival: Arrival) -> None:
    """It is in safe hands, whether its sender still wants to know or not."""
    try:
        arrival.accept()
    except LocalProtocolError as gone:  # the message came all the same; its sender cannot know
        _log.debug("not accepted: %s", gone)


def refuse(arrival: Arrival, condition: str, description: str) -> None:
    """It is not taken; if its sender waits for no answer, it is gone."""
    try:
        arrival.reject(condition, description)
    except LocalProtocolError as gone:
        _log.debug("not rejected: %s", gone)


def release(arrival: Arrival) -> None:
    """It is not taken, and its sender may send it again; if that one waits for no answer, it is gone."""
    try:
        arrival.release()
    except LocalProtocolError as gone:
        _log.debug("not released: %s", gone)

"""AMQP 1.0 under trio: connections, sessions, links and deliveries to await."""

from . import (
    frame_logging as frame_logging,
)  # so that the frames of every connection are logged, of any dialect

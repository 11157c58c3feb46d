"""Where the RabbitMQ emulator and a container answer a client of 0-9-1 otherwise than RabbitMQ 4, and why.

``docs/how-to/rabbitmq.rst`` has the reasons; ``test_exchanges`` holds both to what the servers answer.
"""

from __future__ import annotations

from typing import Final

EMULATOR: Final[dict[str, tuple[str, ...]]] = {
    "The reason of a handshake that fails is sent in a close; RabbitMQ ends the connection without one.": (
        "channel_max_above_the_proposal",
        "channel_max_of_zero",
        "frame_max_above_the_proposal",
        "frame_max_below_4096",
        "frame_max_of_zero",
        "unknown_mechanism",
    ),
    "A method before ``connection.open`` ends the connection without a close (0-9-1, 2.2.4); RabbitMQ sends 505.": (
        "method_before_open",
    ),
    "An unknown class, method or type in a table is answered with 503 or 502; RabbitMQ ends the connection without a close.": (
        "table_with_an_unknown_type",
        "unknown_class",
        "unknown_method",
    ),
    "A body that is longer than its header declares is answered with 501; RabbitMQ does not answer.": (
        "body_longer_than_its_header",
    ),
    "A channel above the agreed ``channel-max`` is answered with 504; RabbitMQ opens it.": (
        "channel_above_channel_max",
    ),
    "A message that is too large is refused at its header; RabbitMQ reads its body first.": (
        "message_above_the_largest_size",
    ),
    "``x-delivery-limit`` must be a number; RabbitMQ ignores a text.": ("argument_delivery_limit_of_quorum",),
    "A timestamp in a binding matches the same timestamp; at RabbitMQ it matches the number of its seconds.": (
        "headers_timestamp",
    ),
    "Numbers within a table in a binding match by their value; at RabbitMQ also their types must be equal.": (
        "headers_table",
    ),
    "A header that is twice in its table stays so; RabbitMQ keeps the first.": ("header_twice_in_a_table",),
    "``CC`` and ``BCC`` must contain texts; RabbitMQ ignores other values, and has another text for what is no list.": (
        "cc_of_numbers",
        "cc_that_is_no_list",
    ),
    "A mandatory direct reply is returned only if no client receives it; RabbitMQ always returns it.": (
        "request_with_a_direct_reply",
    ),
    "``basic.nack`` to a publisher has neither ``multiple`` nor ``requeue``; RabbitMQ sets both.": (
        "confirm_of_what_is_refused",
        "letter_of_a_refusal",
    ),
    "The text of a transaction that fails names the queue; RabbitMQ's is ``partial tx completion``.": (
        "commit_to_a_full_queue",
    ),
    "A quorum queue delivers by all ten priorities; RabbitMQ has two, and gives the higher two messages of three.": (
        "priorities_of_a_quorum_queue",
    ),
}
"""The cases in which both differ, by their reason."""

CONTAINER: Final[dict[str, tuple[str, ...]]] = {
    "Other protocols are served on the same port, so another header is answered by one of them.": (
        "header_of_1_1_0_8",
    ),
    "``channel.flow`` is obeyed.": ("flow_is_not_obeyed",),
    "``basic.qos`` applies to consumers that run, and with ``global`` to all queues.": (
        "prefetch_is_for_later_consumers",
        "prefetch_of_the_channel_at_a_quorum_queue",
    ),
    "Arguments for another type of queue have their effect or none; they are not refused.": (
        "argument_dead_letter_strategy_of_classic",
        "argument_dead_letter_strategy_of_quorum",
        "argument_delivery_limit_of_classic",
        "argument_group_size_of_classic",
        "argument_group_size_of_quorum",
        "argument_leader_locator_of_classic",
        "argument_leader_locator_of_quorum",
        "argument_master_locator_of_quorum",
        "argument_max_age_of_classic",
        "argument_max_age_of_quorum",
        "argument_max_in_memory_length_of_classic",
        "argument_max_priority_of_quorum",
        "argument_queue_mode_of_classic",
        "argument_queue_mode_of_quorum",
        "argument_queue_version_of_classic",
        "argument_queue_version_of_quorum",
        "argument_stream_segment_of_classic",
        "argument_stream_segment_of_quorum",
    ),
    "A message expires in time wherever it is in its queue.": ("messages_expire_at_the_head_alone",),
    "``x-max-length-bytes`` counts whole messages, and one message is taken however large it is.": (
        "message_above_the_octets_of_a_queue",
        "octets_are_those_of_bodies",
    ),
    "If a queue with priorities is full, the oldest message of the lowest priority dies.": (
        "overflow_of_a_queue_with_priorities",
    ),
}
"""The further cases in which a container differs."""

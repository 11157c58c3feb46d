from typing import NamedTuple

class queue_declare_ok_t(NamedTuple):
    queue: str
    message_count: int
    consumer_count: int

"""Test code without trio, or without Python: a container in a thread, at a port."""

import subprocess
import sys

import trio_amqp10 as amqp
from trio_amqp10.testing import running_container

AMQP10 = [sys.executable, "-m", "trio_amqp10"]


def test_command_line_asks_a_function_of_ours() -> None:
    container = amqp.Container("tested")

    @container.function("upper")
    async def upper(message: amqp.Message) -> str:
        return str(message.body).upper()

    with running_container(container=container) as url:
        answer = subprocess.check_output([*AMQP10, "request", f"{url}/upper", "--body", "tea"], text=True)
    assert answer == "TEA\n"
    assert upper.__name__ == "upper"


def test_queue_keeps_what_another_process_sent(amqp_url: str) -> None:  # a fixture for pytest
    subprocess.check_call([*AMQP10, "send", f"{amqp_url}/orders", "--body", "tea"], stdout=subprocess.DEVNULL)
    assert subprocess.check_output([*AMQP10, "receive", f"{amqp_url}/orders", "--count", "1"]) == b"tea\n"

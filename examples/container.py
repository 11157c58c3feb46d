"""A container of named nodes: a queue, a function, a consumer and a producer."""

import sys

import trio

import trio_amqp10 as amqp

container = amqp.Container("shop")
container.add_queue("orders")


@container.function("price")
async def price(request: amqp.Message) -> float:
    return {"tea": 3.5, "coffee": 4.0}[request.body]


@container.consumer("audit")
async def audit(delivery: amqp.Delivery) -> None:
    print("audit:", delivery.message.body)  # accepted on return, rejected on an exception


@container.producer("ticks")
async def ticks(sender: amqp.Sender) -> None:
    for number in range(3):
        await sender.send(number)


async def main(
    url: str, *, task_status: trio.TaskStatus[list[amqp.Listener]] = trio.TASK_STATUS_IGNORED
) -> None:
    await container.serve(url, task_status=task_status)


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if sys.argv[1:] else sys.exit("usage: python container.py URL"))

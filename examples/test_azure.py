"""Test a program for Azure Service Bus (pip install azure-servicebus pytest)."""

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusSubQueue

from trio_amqp10.testing import service_bus


def bill(client: ServiceBusClient) -> int:
    """The program: complete all orders, and dead-letter other messages."""
    done = 0
    with client.get_queue_receiver("orders", max_wait_time=1) as receiver:
        for message in receiver:
            if str(message).startswith("order"):
                receiver.complete_message(message)
                done += 1
            else:
                receiver.dead_letter_message(message, reason="no order")
    return done


def test_bill_takes_orders_and_puts_aside_the_rest() -> None:
    with (
        service_bus(queues=["orders"]) as connection_string,
        ServiceBusClient.from_connection_string(connection_string) as client,
    ):
        with client.get_queue_sender("orders") as sender:
            for body in ("order tea", "nonsense", "order milk"):
                sender.send_messages(ServiceBusMessage(body))
        assert bill(client) == 2
        dead_letters = ServiceBusSubQueue.DEAD_LETTER
        with client.get_queue_receiver("orders", sub_queue=dead_letters, max_wait_time=1) as receiver:
            assert [(str(each), each.dead_letter_reason) for each in receiver] == [("nonsense", "no order")]

"""Test a program for Azure Event Hubs (pip install azure-eventhub pytest)."""

from collections import Counter

from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient

from trio_amqp10.testing import event_hubs


def count(client: EventHubConsumerClient, wanted: int) -> Counter[str]:
    """The program: count the clicks from the first event on, until ``wanted`` clicks."""
    clicks: Counter[str] = Counter()

    def on_event(_context: object, event: EventData) -> None:
        clicks[event.body_as_str()] += 1
        if clicks.total() >= wanted:
            client.close()

    client.receive(on_event=on_event, starting_position="-1")
    return clicks


def test_count_sees_the_clicks_of_all_partitions() -> None:
    with event_hubs({"clicks": 2}) as connection_string:
        hub = {"eventhub_name": "clicks"}
        with EventHubProducerClient.from_connection_string(connection_string, **hub) as producer:
            producer.send_batch([EventData("tea"), EventData("milk")], partition_id="0")
            producer.send_batch([EventData("tea")], partition_id="1")
        consumer = EventHubConsumerClient.from_connection_string(connection_string, "$Default", **hub)
        assert count(consumer, 3) == {"tea": 2, "milk": 1}

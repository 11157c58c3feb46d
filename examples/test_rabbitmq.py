"""Test a program for RabbitMQ 4 (pip install rabbitmq-amqp-python-client pytest)."""

from rabbitmq_amqp_python_client import (
    AddressHelper,
    ClassicQueueSpecification,
    Connection,
    Converter,
    Environment,
    ExchangeSpecification,
    ExchangeToQueueBindingSpecification,
    ExchangeType,
    Message,
)

from trio_amqp10.testing import rabbitmq


def prepare(connection: Connection) -> None:
    """The program: declare a queue for all messages about tea."""
    management = connection.management()
    management.declare_exchange(ExchangeSpecification(name="orders", exchange_type=ExchangeType.topic))
    management.declare_queue(ClassicQueueSpecification(name="tea"))
    management.bind(
        ExchangeToQueueBindingSpecification(
            source_exchange="orders", destination_queue="tea", binding_key="*.tea"
        )
    )


def test_what_is_said_about_tea_goes_to_its_queue() -> None:
    with rabbitmq() as url:
        connection = Environment(uri=url).connection()
        connection.dial()
        prepare(connection)
        publisher = connection.publisher(AddressHelper.exchange_address("orders", "green.tea"))
        publisher.publish(Message(body=Converter.string_to_bytes("one cup")))
        publisher.close()
        assert connection.management().queue_info("tea").message_count == 1
        connection.close()

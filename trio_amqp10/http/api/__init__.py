"""The operations of RabbitMQ's management API."""

"""The transport of kombu, alone and under Celery."""

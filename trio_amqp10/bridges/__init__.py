"""Bridges from programs without trio to the trio in which the library runs.

``trio_thread`` runs trio, ``portal`` passes calls to it, and ``asyncio_bridge`` and ``blocking_bridge`` wait for them. The calls are
listed in ``trio_amqp10.aio``, of which ``trio_amqp10.blocking`` is generated.
"""

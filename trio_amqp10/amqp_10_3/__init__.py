"""AMQ Protocol 10.3, of 2006: what its wire has of its own, over the codec and the engine of 0-9-1, sans-IO, for both roles.

``V10_3`` is the profile to give to ``amqp091.engine.Engine``. The modules of this folder know no clock, socket, trio or
logger. ``C`` with a number is a line of the class reference of 10.3.
"""

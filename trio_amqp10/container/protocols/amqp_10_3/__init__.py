"""AMQ Protocol 10.3 in the container: its connections and channels, on those of AMQP 0-9-1.

Its messages have the form of 0-9-1. ``C`` with a number is a line of the class reference of 10.3.
"""

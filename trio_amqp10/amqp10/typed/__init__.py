"""The codec of a program's own classes (1.3, 1.4).

``trio_amqp10.typed`` exports the public names and describes their use.
"""

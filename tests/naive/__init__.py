"""A second AMQP 1.0 codec and scripted peers, written from the standard alone: the oracle of the tests.

Nothing here imports the package under test, so that the two can only agree by both being right.
"""

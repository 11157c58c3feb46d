"""The base of all protocols: errors, state machines, timers, tokens and tables.

Nothing here knows a protocol's frames, a network or a clock.
"""

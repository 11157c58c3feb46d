"""AMQ Protocol 10.3 in the container: connections and channels, based on 0-9-1.

Messages are stored in the form of 0-9-1. ``C`` with a number is a line of the class reference of 10.3.
"""

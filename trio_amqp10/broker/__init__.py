"""The parts of a container that know no protocol.

Nodes, exchanges, stores, rights and transactions.
"""

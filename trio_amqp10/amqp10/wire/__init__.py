"""The type system of AMQP 1.0 (Part 1): Python values to octets and back.

Import from the modules: ``values`` (the types), ``encode`` and ``decode`` (functions with offsets), ``composite`` (declared
types and their registries), ``codes`` (the table of encodings). This package does not know frames of a connection.
"""

"""Octets to Python values and back: the type system of Part 1, which knows no frame.

Import from the modules: ``values`` (the types), ``encode`` and ``decode`` (free functions with
offsets), ``composite`` (declared types and their registries), ``codes`` (the table of encodings).
"""

"""Decoding of captured connections into frames, frame logs and diagrams.

Knows the octets of the protocols; knows no engine, no clock and no file.
"""

"""Captured conversations as frames, frame logs and diagrams.

Knows octets and what they mean; knows no engine, no clock and no file.
"""

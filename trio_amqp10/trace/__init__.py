"""A conversation as it was on the wire, taken apart for people: frames, frame logs, captures, diagrams.

Knows octets and what they mean; knows no engine, no clock and no file.
"""

"""The sans-IO engine of 0-9-1 for both roles: connection and channels.

A ``Profile`` gives it the methods of another version.
"""

"""The wire format of 0-9-1: frames, fields, tables, methods and contents (4.2)."""

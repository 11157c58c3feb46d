"""The encoding of 10.3 where it differs from 0-9-1: frames and properties."""

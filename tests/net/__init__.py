"""Tests of the transport for any dialect, over streams in memory and over sockets."""

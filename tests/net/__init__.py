"""Tests of what moves octets for any dialect: over streams in memory and over sockets."""

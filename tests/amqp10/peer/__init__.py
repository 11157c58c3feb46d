"""Tests of the trio adapter: promises to users, over streams in memory and over sockets."""

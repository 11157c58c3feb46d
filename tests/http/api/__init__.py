"""Tests of the operations of the HTTP API."""

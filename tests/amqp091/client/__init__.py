"""Tests of the 0-9-1 client, over memory streams and a small broker that is written for them."""

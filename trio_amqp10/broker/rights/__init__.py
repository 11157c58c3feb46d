"""Permissions and quotas of the peers of a container."""

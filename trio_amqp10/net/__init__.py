"""Streams and the tasks that serve them, whatever dialect is spoken: pump, timers, TLS, WebSockets, listeners."""

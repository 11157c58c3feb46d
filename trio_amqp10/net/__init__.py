"""Streams, listeners, timers, TLS, WebSockets and the pump, for any dialect."""

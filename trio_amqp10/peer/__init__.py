"""The engine under trio: connections, sessions, links and deliveries that a program awaits."""

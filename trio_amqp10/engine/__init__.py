"""The protocol, sans-IO: connection, session and link endpoints, and the layers stacked under them."""

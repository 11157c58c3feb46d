"""The client of 10.3 against the server over a container, in memory and over TCP."""

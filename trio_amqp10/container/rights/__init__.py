"""Who may do what in a container, and how much of it."""

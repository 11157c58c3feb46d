"""What each protocol brings to the container: the form of its messages, and what its peers may ask for."""

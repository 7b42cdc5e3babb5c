"""What this host says of itself, of its own accord or when it is asked."""

"""What a conductor looks after by itself."""

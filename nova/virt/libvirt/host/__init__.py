"""What a host is, has and can."""

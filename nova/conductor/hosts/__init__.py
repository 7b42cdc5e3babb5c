"""What daemons and hosts say of themselves, and what is said to them of it."""

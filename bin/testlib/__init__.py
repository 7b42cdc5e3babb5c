"""What `bin/test` is made of."""

"""What a guest is made of, and what is done to it on its host."""

"""Images, their properties, and the access of compute hosts to them."""

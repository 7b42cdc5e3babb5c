"""Images, their properties, and how compute hosts may read and write them."""

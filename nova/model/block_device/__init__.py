"""Block device mappings of a request: read, checked, and merged with those of the image."""

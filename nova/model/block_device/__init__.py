"""Block device mappings of a request: read, checked, and merged with the mappings of the image."""

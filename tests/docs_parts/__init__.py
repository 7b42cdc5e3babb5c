"""Writers of the generated pages."""

"""What writes each generated page."""

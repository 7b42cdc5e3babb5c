"""What may reach this host's guests, and what they may send."""

"""The host: its inventory, capabilities and traits."""

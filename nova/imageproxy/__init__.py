"""The image proxy: images for compute hosts and snapshots from them, each with a ticket, without credentials on
hosts."""

"""The image proxy: images to compute hosts and snapshots from them, each by a ticket, no credential on the host."""

"""Registration, heartbeats and reports of daemons and hosts, and the answers to them."""

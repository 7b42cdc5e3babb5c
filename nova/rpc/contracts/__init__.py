"""RPC contracts: the methods that daemons may call on each other. Any change needs a new version (a test fingerprints
each)."""

"""The lifecycle of guests on their host: build, start, move, snapshot and recovery."""

"""What becomes of guests on their host: made, started, moved, snapshotted, found again."""

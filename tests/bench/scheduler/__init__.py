"""The scheduler's benchmark: real scheduler, conductor steps and database; hosts that somebody made up."""

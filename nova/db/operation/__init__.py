"""Operations and runners: the owners of open operations, and overdue work."""

"""Operations and runners: who works on what, and what is overdue."""

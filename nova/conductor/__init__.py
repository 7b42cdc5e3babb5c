"""The conductor: decides which changes happen and in which order, and keeps the records. Only this package accesses the
database."""

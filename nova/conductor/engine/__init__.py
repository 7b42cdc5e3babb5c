"""The operation engine: workflows, their runner and journal, and the notifications of operations."""

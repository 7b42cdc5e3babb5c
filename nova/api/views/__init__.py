"""Answers, a module a noun."""

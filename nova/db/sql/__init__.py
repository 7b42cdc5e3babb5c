"""Engines, transactions, column types and statements that all queries share."""

"""The steps that make a guest: each with its undo, repeatable both."""

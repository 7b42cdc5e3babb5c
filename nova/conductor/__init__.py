"""Decides what must happen, in which order, and what is true. The only room that speaks to the database."""

"""Data model: typed immutable values, states and pure rules. No I/O, and no library that does any."""

"""The words of the system: typed immutable values, states and pure rules. No I/O, no library that does any."""

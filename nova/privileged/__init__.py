"""The few things that run as root: small functions, argument lists only, never a shell."""

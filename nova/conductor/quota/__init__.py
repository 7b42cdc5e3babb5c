"""Quota: where limits are kept, and whether a change fits."""

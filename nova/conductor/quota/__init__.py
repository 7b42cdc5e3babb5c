"""Quota: stores of limits, and checks whether a change fits."""

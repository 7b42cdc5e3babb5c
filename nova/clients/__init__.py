"""Speaks to the services next door: only the calls we use, with typed answers."""

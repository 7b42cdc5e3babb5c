"""Carries calls between daemons, and holds the contracts they keep."""

"""Decides where servers run: a pure decision over the hosts in memory. Only ``service`` speaks to others."""

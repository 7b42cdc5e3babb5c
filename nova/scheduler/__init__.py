"""Placement of servers: a pure decision over the hosts in memory. Only ``service`` communicates with other services."""

"""RPC between daemons: the transports, clients and servers, and the contracts of each service."""

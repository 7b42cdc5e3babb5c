"""Where networks come from: nova-network, whose rows are the conductor's own, or Neutron next door."""

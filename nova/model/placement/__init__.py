"""Resource providers: inventories, traits, allocations, and how a request fits them."""

"""Resource providers: inventories, traits, allocations, and the match of requests with them."""

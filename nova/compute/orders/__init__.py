"""Which orders are carried out, in which order, and what is around each of them."""

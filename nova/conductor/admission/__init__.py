"""What must be refused at once, and the two short transactions that make a request durable."""

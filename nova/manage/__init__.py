"""What operators do by hand: ``nova-manage``, its commands, and what is behind them."""

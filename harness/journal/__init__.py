"""What was decided and done: actions, their states and events, in a database."""

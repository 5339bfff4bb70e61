"""What the decisions would have done that were not acted on, scored once their time has passed, and what that earns."""

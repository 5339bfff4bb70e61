"""What goes wrong in a simulated stack, and how."""

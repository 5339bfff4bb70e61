"""HAProxy as the gateway: its files, its runtime socket, what it holds, and how that is changed."""

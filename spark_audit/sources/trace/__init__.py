"""Message traces: RocketMQ's own reports of clients about single messages."""

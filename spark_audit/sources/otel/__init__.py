"""OpenTelemetry spans of messaging clients, read as events."""

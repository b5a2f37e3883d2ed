"""The long-running process: polls, publishes /metrics, takes business events; the CLI."""

"""What the daemon does with an alert: poll, investigate, write back. Celery calls these; they don't know it."""

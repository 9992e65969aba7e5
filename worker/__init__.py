"""The daemon: configuration, wiring, pipeline, store (Redis), queue (Celery), HTTP and command line."""

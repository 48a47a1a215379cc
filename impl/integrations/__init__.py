"""Our client inside other libraries: Celery and kombu, FastStream, taskiq, OpenTelemetry.

`mqproof.integrations` exports the public names. Each needs the extra of its library.
"""

"""HTTP for operators: RabbitMQ's API over the management of a container.

``Container.serve_http`` serves it. The extra ``[http]`` has the libraries: hypercorn and Starlette.
"""

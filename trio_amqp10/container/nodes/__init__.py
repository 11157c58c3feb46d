"""What a container holds, and what nodes and links ask of each other (``node``).

Nothing here knows a protocol: links come as inlets and outlets, and whoever makes those of the links of another dialect has
all of these nodes. A test holds that.
"""

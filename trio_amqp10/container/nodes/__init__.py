"""What a container holds, and what nodes ask of links and links of nodes (``node``).

Nothing here knows a protocol: links come as inlets and outlets, and whoever makes those of the links of another dialect has
all of these nodes. A test holds that.
"""

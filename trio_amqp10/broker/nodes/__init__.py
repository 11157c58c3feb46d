"""The nodes of a container, and the interfaces between nodes and links.

Nothing here knows a protocol. A node sees a link as an inlet or an outlet (``node``), so that each dialect which adapts its
links to these has the use of all nodes. A test checks this.
"""

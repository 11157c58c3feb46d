"""The draft of AMQP 1.0 of May 2010: its types, and their translation.

The draft is revision 1090, a historical dialect. There is no other implementation to test against, so it is verified by
its document, by vectors, and by connecting the two peers of this package. ``DraftConnection`` of ``connection`` is an
engine like that of the final standard, and uses the draft on the wire. Lines of the document are cited as "D" and the
number. The modules of this folder know no clock, socket, trio or logger.
"""

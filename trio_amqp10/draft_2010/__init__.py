"""The draft of AMQP 1.0 of May 2010 (revision 1090): its types, and a translation to and from the final standard.

A historical dialect: verified by its document, by vectors and by the two ends here; there is no other implementation to test
against. ``DraftConnection`` of ``connection`` is an engine as that of the final standard is, and speaks the draft on the wire.
Lines of the document are cited as "D" and the number. The modules of this folder know no clock, socket, trio or logger.
"""

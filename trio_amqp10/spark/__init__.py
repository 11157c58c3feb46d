"""The data pipeline: AMQP in and out of Spark, through PySpark (docs/how-to/spark).

With the extra ``spark`` installed, ``format("amqp10")`` is there by itself: Spark finds the package
``pyspark_amqp10``, which names ``datasource.Amqp10DataSource``. Of this package only ``datasource``,
``readers``, ``log_reader`` and ``writers`` need PySpark; a container that keeps a ``Ledger`` does not.

=============  =========================================================================================
``options``    what ``.option(...)`` may say
``columns``    the columns of a message, and their Arrow types
``typed_json`` values of maps as JSON and back, with or without their AMQP types
``parts``      sections of a message, straight from its octets
``arrays``     sections of many messages as columns
``rows``       messages to rows, rows to batches
``outbound``   batches to messages
``spool``      what was received and not yet consumed by Spark, on disk: files only
``seen``       which messages the spool has had, by their ids
``kept``       which deliveries it has, by their tags, for peers that keep links
``intake``     the receiver, in a thread of its own: peer to spool
``dial``       connections, made anew when they are lost
``pool``       connections that outlive a task
``selecting``  sources that select
``browse``     look at a queue
``delivery``   send a partition, and wait for every outcome
``hooks``      where tests let processes die
``ahead``      batches that are made while others are read
``log``        messages that a peer numbers and keeps, read from any number on
``ledger``     a node that takes each record once, for transactions that must happen once
``readers``    what Spark calls to read a queue
``log_reader`` what Spark calls to read a log
``writers``    what Spark calls to write
``datasource`` what Spark calls first
``patience``   when rows are worth a batch
``dialects``   how logs of RabbitMQ and of Event Hubs are read
``java``       what Spark needs beside Python
=============  =========================================================================================
"""

from __future__ import annotations

from .java import prepare
from .ledger import Ledger

__all__ = ["Ledger", "prepare"]

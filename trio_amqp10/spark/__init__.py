"""AMQP in and out of Spark, through PySpark (docs/how-to/spark).

With the extra ``spark`` installed, ``format("amqp10")`` is there by itself: Spark finds the package
``pyspark_amqp10``, which names ``datasource.Amqp10DataSource``. Of this package only ``datasource``,
``readers``, ``offset_stream`` and ``writers`` need PySpark; a container that keeps a ``Ledger`` does not.

==================== ================================================================================
``options``          what ``.option(...)`` may say
``schema``           the columns of a message, and their Arrow types
``typed_json``       values of maps as JSON and back, with or without their AMQP types
``section_columns``  sections of a message, straight from its octets
``arrow_arrays``     sections of many messages as columns
``property_columns`` application-properties as columns of their own
``rows``             messages to rows, rows to batches
``message_encoder``  batches to messages
``backlog``          what a query can read, and whoever receives it
``spool``            what was received and not yet consumed by Spark, on disk: files only
``segments``         what a file of the spool holds, and the rows that are made of it
``credit_limit``     how much may be granted, in messages and in octets
``recent_ids``       which messages the spool has had, by their ids
``spool_terminus_store``    which deliveries it has, by their tags, for peers that keep links
``spool_receiver``   the receiver, in a thread of its own: peer to spool
``receiving_figures``  what the receiver does, in a file beside the spool
``spool_writer``     deliveries to a segment of the spool
``storage``          folders and object stores, whose names are written whole
``manifests``        which rows a lane has, by names alone
``lane_spool``       the spool of one lane, which one receiver writes
``lanes_reader``     the rows of all lanes, which one query consumes
``lane_program``     the process of a lane beside the driver
``lane_processes``   all of those, started, watched and ended
``first_copies``     each id once, whichever lane it came to
``connections``      connections, made anew when they are lost
``amqp091_peer``     connections of AMQP 0-9-1, as those of 1.0
``connection_pool``  connections that outlive a task
``source_selection`` sources that select
``browse``           look at a queue
``sink_delivery``    send a partition, and wait for every outcome
``failure_points``   where tests let processes die
``prefetch``         batches that are made while others are read
``offset_reader``    messages that a peer numbers and keeps, read from any number on
``ledger_node``      a node that takes each record once, for transactions that must happen once
``readers``          what Spark calls to read a queue
``offset_stream``    what Spark calls to read logs, as a stream or a range
``writers``          what Spark calls to write
``datasource``       what Spark calls first
``batch_linger``     when rows are worth a batch
``log_offsets``      how far a batch of logs goes, and where new ones begin
``log_dialects``     how logs of RabbitMQ and of Event Hubs are read
``query_watch``      how the queries of a session stand, for whoever watches
``super_streams``    which streams of RabbitMQ there are
``java_home``        what Spark needs beside Python
==================== ================================================================================
"""

from __future__ import annotations

from .java_home import prepare
from .ledger_node import Ledger
from .query_watch import QueryFigures, QueryWatch

__all__ = ["Ledger", "QueryFigures", "QueryWatch", "prepare"]

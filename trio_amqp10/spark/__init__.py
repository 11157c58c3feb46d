"""Spark's source and sink for AMQP, through PySpark (docs/how-to/spark).

With the extra ``spark`` installed, ``format("amqp10")`` needs no registration: Spark finds the package
``pyspark_amqp10``, which names ``datasource.Amqp10DataSource``. Only the modules ``datasource``,
``readers``, ``offset_stream`` and ``writers`` need PySpark; a container with a ``Ledger`` does not.

==================== ================================================================================
``options``          the options of ``.option(...)``
``schema``           the columns of a message, and their Arrow types
``typed_json``       values of maps as JSON and back, with or without their AMQP types
``section_columns``  sections of a message, straight from its octets
``arrow_arrays``     sections of many messages as columns
``property_columns`` application-properties as columns of their own
``source_columns``   where and when a message entered its log, as columns of their own
``rows``             messages to rows, rows to Arrow batches
``message_encoder``  Arrow batches to messages
``backlog``          all rows that a query can read, and their receivers
``spool``            received rows that Spark has not consumed, in files on disk
``local_files``      locks and flushes of files
``segments``         the content of a file of the spool, and the rows made from it
``credit_limit``     the bound of link credit, in messages and in octets
``recent_ids``       the message-ids that the spool has had lately
``spool_terminus_store``  the unsettled deliveries of the spool, for peers that keep links
``spool_receiver``   the receiver from a peer into the spool, in its own thread
``receiving_figures``  the figures of a receiver, in a file beside the spool
``spool_writer``     deliveries to a segment of the spool
``storage``          folders and object stores with atomic writes
``manifest_catalog`` the rows of a lane, by the names of its files
``lane_spool``       the spool of one lane, written by one receiver
``lanes_reader``     the rows of all lanes, consumed by one query
``lane_program``     the process of a lane beside the driver
``lane_processes``   starts, watches and ends the processes of lanes
``first_copies``     drops messages that another lane has too
``token_sources``    tokens of a key, of a command or of Microsoft Entra
``connections``      connections, and reconnecting when they are lost
``amqp091_peer``     AMQP 0-9-1 behind the interface of AMQP 1.0
``connection_pool``  connections that are kept between tasks
``source_selection`` selector, copying and durability of a source
``browse``           reads copies of the messages of a queue
``sink_delivery``    sends the messages of a task, and waits for every outcome
``prefetch``         makes batches ahead of the thread that reads them
``offset_reader``    reads messages of a log, from any number on
``ledger_node``      a queue that takes each record once, for exactly-once transactions
``readers``          the readers of a queue that Spark calls
``offset_stream``    the readers of logs that Spark calls
``writers``          the writers that Spark calls
``datasource``       the data source that Spark finds
``batch_linger``     decides when to offer rows as a batch
``log_offsets``      computes the offsets of a batch of logs
``log_dialects``     the offsets of RabbitMQ streams and of event hubs
``spool_figures``    what waits in a spool, by its files, and the reports of receivers
``query_watch``      figures of the queries of a session
``super_streams``    finds the streams of RabbitMQ
``java_home``        finds a Java for Spark
==================== ================================================================================
"""

from __future__ import annotations

from .java_home import prepare
from .ledger_node import Ledger
from .query_watch import QueryFigures, QueryWatch

__all__ = ["Ledger", "QueryFigures", "QueryWatch", "prepare"]

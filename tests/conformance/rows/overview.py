"""Part 0: what it takes to conform."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, MUST_NOT, RECOMMENDED, SHOULD, Change, need

REQUIREMENTS = [
    need(
        "0.1-1",
        MUST,
        "a process that speaks AMQP can send and receive messages in the standard encoding, format 0",
        "message_keeps_its_format",
        mutant=Change(
            "message_format = message.message_format if isinstance(message, Message) else 0\n        await",
            "message_format = 1\n        await",
        ),
    ),
    need(
        "0.2-1",
        MUST,
        "negotiate the version, then parse, process and produce frames as in Parts 1 to 5",
        gap="shown elsewhere: by the rows of those parts",
    ),
    need(
        "0.2-2",
        MUST_NOT,
        "depend on an extension from outside the standard to work with another conforming end",
        "sender_waits_for_credit",
        mutant=Change(
            "        if self._opened and not self.is_gone:\n            return\n",
            "        assert self.remote.offered_capabilities\n",
        ),
    ),
    need(
        "0.2-3",
        MUST,
        "implement the types and encodings of Part 1",
        gap="shown elsewhere: by the rows of Part 1",
    ),
    need(
        "0.2-4",
        MUST,
        "implement Part 2 over TCP, or a mapping of AMQP to another transport",
        gap="shown elsewhere: by the rows of Part 2",
    ),
    need(
        "0.2-5",
        MAY,
        "a mapping to another transport may change or replace Part 2",
        gap="not offered: over WebSockets, Unix sockets and memory Part 2 is as over TCP",
    ),
    need(
        "0.2-6",
        MUST,
        "answer as Part 2 defines if one of its behaviours is not offered",
        gap="shown elsewhere: by the rows of Part 2",
    ),
    need(
        "0.2-7",
        MUST,
        "an implementation that handles messages implements Part 3",
        gap="shown elsewhere: by the rows of Part 3",
    ),
    need(
        "0.2-8",
        MUST_NOT,
        "an implementation that only passes messages on does nothing that breaks Part 3",
        gap="nothing to show: this one handles messages",
    ),
    need(
        "0.2-9",
        MUST,
        "answer as Part 3 defines if one of its behaviours is not offered",
        gap="shown elsewhere: by the rows of Part 3",
    ),
    need(
        "0.2-10",
        SHOULD,
        "act as a transaction controller or as a transactional resource",
        "message_becomes_visible_when_its_transaction_commits",
        mutant=Change(
            "        for each in posts.values():\n            attempt(each.commit)", "        pass"
        ),
    ),
    need("0.2-11", MAY, "or as neither", gap="not offered: it acts as both"),
    need(
        "0.2-12",
        RECOMMENDED,
        "an intermediary can be a transactional resource",
        "message_becomes_visible_when_its_transaction_commits",
        "message_is_gone_when_its_transaction_is_rolled_back",
        mutants=(
            Change(
                "        for each in posts.values():\n            attempt(each.commit)\n", "        pass\n"
            ),
            Change(
                "        for each in posts.values():\n            each.rollback()\n        for answer",
                "        for each in posts.values():\n            each.commit()\n        for answer",
            ),
        ),
    ),
    need(
        "0.2-13",
        RECOMMENDED,
        "a library lets programs be transaction controllers",
        "transaction_spans_sessions_of_its_connection_and_no_other",
        mutants=(
            Change("            if session.connection is not ours.connection:\n", "            if True:\n"),
            Change("            if session.connection is not ours.connection:\n", "            if False:\n"),
        ),
    ),
    need(
        "0.2-14",
        MUST,
        "answer as Part 4 defines if one of its behaviours is not offered",
        gap="shown elsewhere: by the rows of Part 4",
    ),
    need(
        "0.2-15",
        SHOULD,
        "security can be set to what its surroundings need",
        "mechanism_goes_over_these_layers_or_does_not",
        mutant=Change(
            "if permitted and (self._users is not None or self._verify is not None):",
            "if False:",
        ),
    ),
    need(
        "0.2-16",
        RECOMMENDED,
        "a peer that listens offers TLS, with the header of 5.2 or as in 5.2.1",
        "messages_cross_tls",
        "one_port_takes_them_all_when_it_is_to_detect",
        mutant=Change(
            '            if protocol_id == TLS_ID:\n                return "in-band-tls", b""\n',
            '            if False:\n                return "in-band-tls", b""\n',
        ),
    ),
    need(
        "0.2-17",
        RECOMMENDED,
        "a peer that listens offers SASL with the usual mechanisms",
        "server_offers_its_mechanisms_at_once",
        mutant=Change(
            "        return [mechanism for mechanism in permitted if mechanism.usable(context)]\n",
            "        return permitted[1:]\n",
        ),
    ),
    need(
        "0.2-18",
        SHOULD,
        "PLAIN and SCRAM-SHA-1 are among them",
        "server_offers_scram_sha_1_and_plain_when_it_is_told_to",
        mutants=(
            Change(
                "            offered.append(PlainServer(self._users,",
                "            list().append(PlainServer(self._users,",
            ),
            Change(
                "shared = _shared(DEFAULT_MECHANISMS if names is None else names,",
                "shared = _shared(DEFAULT_MECHANISMS,",
            ),
        ),
        gap="SCRAM-SHA-1 is offered where the program names it: by default SCRAM is of SHA-256 and SHA-512",
    ),
    need(
        "0.2-19",
        SHOULD,
        "a peer that dials can be set up to meet a listener that does all this",
        "mechanism_goes_over_these_layers_or_does_not",
        mutant=Change(
            "        self.name: str = mechanism\n        self.username",
            '        self.name: str = "SCRAM-SHA-256"\n        self.username',
        ),
    ),
]

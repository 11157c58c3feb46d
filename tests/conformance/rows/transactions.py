"""Part 4: transactions."""

from __future__ import annotations

from tests.conformance.requirement import MUST, MUST_NOT, RULE, SHOULD, SHOULD_NOT, Change, need

_CANNOT = "coordinator_rejects_or_detaches_with_what_it_cannot_do"
_REJECTS = Change("if request.link.permits(rejected):", "if False:")
_DETACHES = Change("if request.link.permits(rejected):", "if True:")
_NO_REASON = Change(
    "            self._settle(request, rejected)",
    "            self._settle(request, Rejected())",
)

REQUIREMENTS = [
    need(
        "4.1-1",
        RULE,
        "the controller attaches the control link, whose target is a coordinator",
        "coordinator_tells_what_it_can_do",
        "transaction_is_refused_where_there_is_no_coordinator",
    ),
    need(
        "4.1-2",
        RULE,
        "no transactional work is done on the control link",
        "coordinator_rejects_work_on_a_control_link_and_the_rest_is_committed",
        "settled_work_on_a_control_link_fails_the_transaction_of_another",
    ),
    need(
        "4.1-3",
        RULE,
        "a txn-id is good on all links of its session, and of its connection where the coordinator can do that",
        "transaction_spans_sessions_of_its_connection_and_no_other",
        "transaction_keeps_to_its_session_when_the_coordinator_cannot_more",
    ),
    need(
        "4.1-4",
        RULE,
        "a control link that closes rolls back the transactions that were declared on it",
        "all_is_as_before_when_the_connection_is_lost_at_any_step",
    ),
    need(
        "4.1-5",
        RULE,
        "work in a transaction that is rolled back then fails",
        "message_for_no_transaction_is_rejected_or_ends_its_link",
        "outcome_for_no_transaction_ends_the_link_and_the_message_goes_back",
    ),
    need(
        "4.2-1",
        RULE,
        "a control link cannot be resumed",
        "control_link_with_an_unsettled_map_is_attached_without_its_deliveries",
    ),
    need(
        "4.2-2",
        RULE,
        "a declare is one amqp-value section",
        _CANNOT,
        "message_becomes_visible_when_its_transaction_commits",
    ),
    need(
        "4.2-3",
        SHOULD,
        "sections beside it are ignored",
        "coordinator_ignores_sections_beside_the_body",
        mutant=Change(
            "            body = TYPES.resolve(request.message.body)",
            "            body = None if request.message.footer else TYPES.resolve(request.message.body)",
        ),
    ),
    need(
        "4.2-4",
        MUST_NOT,
        "a declare is sent settled by the controller",
        "declare_and_discharge_are_sent_unsettled",
        mutant=Change(
            "            target=Coordinator(capabilities=_WANTED),",
            '            target=Coordinator(capabilities=_WANTED),\n            guarantee="at-most-once",',
        ),
    ),
    need(
        "4.2-5",
        MUST,
        "the controller waits for the outcome of its declare, and works in the transaction that it names",
        "declare_that_is_rejected_or_made_of_no_coordinator_raises",
        mutant=Change("            if not isinstance(outcome, Declared):", "            if outcome is None:"),
    ),
    need(
        "4.2-6",
        SHOULD,
        "the coordinator detaches a control link that sends settled, with illegal-state",
        "coordinator_detaches_a_control_link_that_sends_settled",
        mutant=Change(
            "inlet.close(Condition.ILLEGAL_STATE.value, _SENT_SETTLED)",
            "inlet.close(Condition.NOT_ALLOWED.value, _SENT_SETTLED)",
        ),
    ),
    need(
        "4.2-7",
        RULE,
        "a declare that is done has the outcome declared, with the id",
        "coordinator_declares_only_so_many",
    ),
    need(
        "4.2-8",
        MUST,
        "a declare that cannot be done is answered with an error that gives the reason",
        _CANNOT,
        mutant=_NO_REASON,
    ),
    need("4.2-9", MUST, "by rejected where the control link's source permits that", _CANNOT, mutant=_REJECTS),
    need("4.2-10", MUST, "by a detach otherwise", _CANNOT, mutant=_DETACHES),
    need(
        "4.2-11",
        SHOULD,
        "the source of the control link permits rejected",
        "control_link_permits_rejected",
        mutant=Change(
            "            source=Source(outcomes=_OUTCOMES),",
            '            source=Source(outcomes=("amqp:accepted:list",)),',
        ),
    ),
    need(
        "4.3-1",
        RULE,
        "a discharge is one amqp-value section with the choice to commit or to roll back",
        "message_becomes_visible_when_its_transaction_commits",
        "message_is_gone_when_its_transaction_is_rolled_back",
    ),
    need(
        "4.3-2",
        RULE,
        "a discharge that is sent settled is an error",
        "declare_and_discharge_are_sent_unsettled",
        "coordinator_detaches_a_control_link_that_sends_settled",
    ),
    need(
        "4.3-3",
        MUST,
        "a discharge that cannot be done is answered with a transaction-error",
        _CANNOT,
        "commit_fails_when_a_node_takes_no_messages_any_more",
        mutant=_NO_REASON,
    ),
    need("4.3-4", MUST, "by rejected where the control link's source permits that", _CANNOT, mutant=_REJECTS),
    need("4.3-5", MUST, "by a detach otherwise", _CANNOT, mutant=_DETACHES),
    need(
        "4.3-6",
        MUST,
        "a discharge that rolls back is always done",
        "transaction_that_has_failed_is_rolled_back_when_asked_to",
        mutant=Change(
            "        if discharge.fail:\n            work.end()\n",
            "        if discharge.fail and work.failure is None:\n            work.end()\n",
        ),
    ),
    need(
        "4.4-1",
        RULE,
        "each piece of work names its transaction in a transactional-state",
        "every_part_of_a_message_says_its_state",
        "outcome_counts_when_its_transaction_commits",
    ),
    need(
        "4.4-2",
        MUST,
        "the coordinator names the right transaction in the states of its work",
        "outcome_of_posted_work_names_its_transaction",
        mutant=Change(
            "TransactionalState(txn_id=txn_id, outcome=ACCEPTED)",
            "TransactionalState(txn_id=b'other', outcome=ACCEPTED)",
        ),
    ),
    need(
        "4.4-3",
        RULE,
        "a txn-id in the flow of the coordinator's end names the transaction of the next transfers",
        "flow_of_the_resource_names_the_transaction_of_what_follows",
    ),
    need(
        "4.4.1-1",
        MUST,
        "a transfer that posts has a transactional-state with the id",
        "transfers_of_posted_messages_name_the_transaction",
        mutant=Change(
            "        return self._state\n\n    def posted",
            "        return None\n\n    def posted",
        ),
    ),
    need(
        "4.4.1-2",
        MUST,
        "all transfers of a delivery name the same transaction",
        "every_part_of_a_message_says_its_state",
        mutant=Change("settled=self._settled, state=state))", "settled=self._settled))"),
    ),
    need(
        "4.4.1-3",
        RULE,
        "the controller discharges nothing while a message is partly posted",
        "commit_waits_for_the_stream_of_another_task",
    ),
    need(
        "4.4.1-4",
        MUST,
        "such a discharge ends the control link with rollback",
        "control_link_is_detached_when_discharged_with_a_message_partly_sent",
        mutant=Change("        if self._has_partial(work):", "        if False:"),
    ),
    need(
        "4.4.1-5",
        RULE,
        "what is posted is not available before the commit",
        "message_becomes_visible_when_its_transaction_commits",
    ),
    need(
        "4.4.1-6",
        MUST,
        "a message that is posted unsettled has its outcome in the transaction before the commit",
        "outcome_of_posted_work_names_its_transaction",
        mutant=Change(
            "            delivery.link.session.settlement.dispose(delivery, state)\n\n    def _forget_states",
            "            pass\n\n    def _forget_states",
        ),
    ),
    need(
        "4.4.2-1",
        MUST_NOT,
        "the controller retires a delivery in another transaction than the one that it is part of",
        "delivery_is_not_retired_in_two_transactions",
        mutant=Change(
            "        if delivery.state is not None and is_terminal(delivery.state):\n            raise",
            "        if False:\n            raise",
        ),
    ),
    need(
        "4.4.2-2",
        MUST,
        "where a peer does so, the control link ends with rollback",
        "control_link_is_detached_when_a_delivery_gets_an_outcome_elsewhere",
        mutant=Change(
            "            acquired = self._conflict(work, watch)\n", "            acquired = False\n"
        ),
    ),
    need(
        "4.4.2-3",
        RULE,
        "a commit applies the outcomes, and settles",
        "outcome_counts_when_its_transaction_commits",
    ),
    need(
        "4.4.2-4",
        RULE,
        "after a rollback the deliveries are still acquired, without an outcome",
        "rollback_leaves_a_delivery_live_unless_it_was_settled",
    ),
    need(
        "4.4.3-1",
        RULE,
        "a txn-id in the properties of a flow binds the transfers that follow",
        "acquired_messages_go_back_when_the_transaction_is_rolled_back",
        "acquired_messages_stay_when_the_transaction_commits",
    ),
    need(
        "4.4.3-2",
        RULE,
        "a discharge clears it",
        "acquired_delivery_follows_the_discharge_when_its_link_goes",
    ),
    need(
        "4.4.3-3",
        MUST,
        "a link that cannot acquire in transactions is detached with not-implemented",
        "link_is_detached_when_a_node_gives_nothing_to_be_acquired",
        mutant=Change(
            "        elif not self._node.leases_messages and not self.copying:", "        elif False:"
        ),
    ),
    need(
        "4.4.3-4",
        SHOULD,
        "no credit is left when the controller discharges",
        "credit_of_a_transaction_is_drained_before_its_discharge",
        mutant=Change("                await receiver.use_up()\n", "                pass\n"),
    ),
    need(
        "4.4.3-5",
        MUST,
        "what is partly sent at the discharge shares its fate",
        "acquired_delivery_partly_sent_is_completed_or_aborted_as_the_discharge_says",
        mutant=Change(
            "            partial.abort()\n        self._settle(RELEASED)",
            "            pass\n        self._settle(RELEASED)",
        ),
    ),
    need(
        "4.4.3-6",
        MUST,
        "after a rollback it is aborted or completed before the discharge is answered",
        "acquired_delivery_partly_sent_is_completed_or_aborted_as_the_discharge_says",
        mutant=Change(
            "            partial.abort()\n        self._settle(RELEASED)",
            "            pass\n        self._settle(RELEASED)",
        ),
        gap="where the session's window is shut the abort waits for it, and the answer to the discharge does not",
    ),
    need(
        "4.4.4.1-1",
        RULE,
        "what was posted settled is available after the commit, and never after a rollback",
        "message_of_many_frames_and_one_sent_settled_are_part_of_a_transaction",
        "message_is_gone_when_its_transaction_is_rolled_back",
    ),
    need(
        "4.4.4.1-2",
        MUST_NOT,
        "a transaction commits with a settled message that cannot be taken",
        "commit_fails_when_a_message_sent_settled_cannot_be_routed",
        mutant=(
            Change(
                "            self.refuse(refusal)\n            outcome = Rejected",
                "            outcome = Rejected",
            ),
            Change(
                "            self.refuse(refusal)\n            raise\n        if node not in self._posts:",
                "            raise\n        if node not in self._posts:",
            ),
        ),
    ),
    need(
        "4.4.4.1-3",
        MUST,
        "the outcome of what is posted is known before the commit",
        "relay_rejects_in_the_transaction_what_it_cannot_route",
        mutant=Change(
            "            node = node.destination(arrival.content)\n            posts", "            posts"
        ),
    ),
    need(
        "4.4.4.1-4",
        MUST,
        "and is reported before the discharge is accepted",
        "relay_rejects_in_the_transaction_what_it_cannot_route",
        mutant=Change(
            "            state = TransactionalState(txn_id=self.id, outcome=outcome)\n        with",
            "            state = TransactionalState(txn_id=self.id, outcome=ACCEPTED)\n        with",
        ),
    ),
    need(
        "4.4.4.1-5",
        MUST,
        "in a state of the same transaction",
        "outcome_of_posted_work_names_its_transaction",
        mutant=Change(
            "TransactionalState(txn_id=txn_id, outcome=ACCEPTED)",
            "TransactionalState(txn_id=b'other', outcome=ACCEPTED)",
        ),
    ),
    need(
        "4.4.4.1-6",
        MUST_NOT,
        "a transaction commits when an outcome that was sent is not possible any more",
        "commit_fails_when_a_node_takes_no_messages_any_more",
        mutant=Change(
            "            node.check_inlet(self.peer)\n            for arrival, size",
            "            for arrival, size",
        ),
    ),
    need(
        "4.4.4.1-7",
        MUST,
        "a delivery that is unsettled after the commit has the outcome that was applied as its state",
        "message_on_a_link_that_settles_second_is_settled_by_its_sender",
        mutant=Change(
            "        self._forget_states()\n        self._transaction.commit(then)",
            "        self._transaction.commit(then)",
        ),
    ),
    need(
        "4.4.4.1-8",
        SHOULD_NOT,
        "a delivery that is unsettled after a rollback has an outcome",
        "posted_message_has_no_outcome_after_a_rollback",
        mutant=Change(
            "        while self._waiting:\n            self._next()\n        attempt(partial",
            "        while self._waiting:\n            self._next().release()\n        attempt(partial",
        ),
    ),
    need(
        "4.4.4.1-9",
        SHOULD,
        "the controller settles soon after the discharge",
        "retired_delivery_is_settled_after_the_commit",
        mutant=Change(
            "                retired.link.session.settlement.settle_incoming(retired, outcome)",
            "                pass",
        ),
    ),
    need(
        "4.4.4.2-1",
        MUST,
        "a delivery that was retired settled in a transaction that is rolled back has the default outcome",
        "rollback_leaves_a_delivery_live_unless_it_was_settled",
        "delivery_retired_in_a_transaction_that_is_rolled_back_has_the_default_outcome",
        mutant=Change(
            "            self.watch.give_back()\n        else:\n            self.watch.leave_transaction()\n",
            "            self.watch.give_back()\n",
        ),
    ),
    need(
        "4.4.4.2-2",
        RULE,
        "one that was retired unsettled is as it was before",
        "rollback_leaves_a_delivery_live_unless_it_was_settled",
        "delivery_can_be_settled_anew_after_a_rollback_when_it_is_kept",
    ),
    need(
        "4.4.4.3-1",
        RULE,
        "the acquisition of a message that is sent settled follows the discharge",
        "message_acquired_at_most_once_is_gone_or_back",
    ),
    need(
        "4.4.4.3-2",
        MUST,
        "an outcome of an acquired delivery before the discharge is in the same transaction",
        "control_link_is_detached_when_a_delivery_gets_an_outcome_elsewhere",
        mutant=Change("            return not self._conflict(work, watch)\n", "            return True\n"),
    ),
    need(
        "4.5.1-1",
        RULE,
        "capabilities are what the controller wants and what the coordinator can do; the controller checks",
        "coordinator_tells_what_it_can_do",
        "transaction_keeps_to_its_session_when_the_coordinator_cannot_more",
    ),
    need(
        "4.5.2-1",
        MUST,
        "a global-id binds the transaction that is declared with it",
        gap="not offered: distributed transactions; a declare with a global-id is rejected",
    ),
    need(
        "4.5.2-2",
        MUST_NOT,
        "a controller names a global-id to a coordinator that has no distributed transactions",
        _CANNOT,
        mutant=Change("        if declare.global_id is not None:", "        if False:"),
        gap="shown from the coordinator's side: the controller here never names one",
    ),
    need("4.5.3-1", RULE, "a discharge has a txn-id", _CANNOT),
    need("4.5.4-1", RULE, "a transaction-id has at most 32 octets", "coordinator_declares_only_so_many"),
    need("4.5.5-1", RULE, "declared has a txn-id", "coordinator_declares_only_so_many"),
    need(
        "4.5.6-1",
        RULE,
        "a transactional-state has a txn-id, and its outcome is what the commit applies",
        "outcome_can_be_changed_until_the_commit_within_the_transaction",
    ),
    need(
        "4.5.7-1",
        RULE,
        "local-transactions, multi-txns-per-ssn and multi-ssns-per-txn have their defined meaning",
        "coordinator_tells_what_it_can_do",
        "transaction_spans_sessions_of_its_connection_and_no_other",
        "transactions_on_one_session_know_nothing_of_each_other",
    ),
    need(
        "4.5.8-1",
        RULE,
        "unknown-id, rollback and timeout are reported each in its case",
        "message_for_no_transaction_is_rejected_or_ends_its_link",
        "commit_fails_when_a_node_takes_no_messages_any_more",
        "commit_fails_when_the_transaction_took_too_long",
        "transaction_of_another_connection_is_unknown_and_goes_on",
        "coordinator_rejects_or_detaches_with_what_it_cannot_do",
        "transaction_that_holds_too_much_is_rolled_back",
        "transaction_is_rolled_back_when_a_node_that_it_posts_to_is_removed",
        "outcome_for_no_transaction_ends_the_link_and_the_message_goes_back",
        "flow_that_names_no_transaction_of_ours_ends_its_link",
        "control_link_is_detached_when_discharged_with_a_message_partly_sent",
        "control_link_is_detached_when_a_delivery_gets_an_outcome_elsewhere",
        mutants=(
            Change(
                "            work.fail(Condition.TRANSACTION_TIMEOUT,",
                "            work.fail(Condition.TRANSACTION_ROLLBACK,",
            ),
            Change(
                '                inlet, request, Condition.TRANSACTION_UNKNOWN_ID.value, "there',
                '                inlet, request, Condition.TRANSACTION_ROLLBACK.value, "there',
            ),
            Change(
                '        failure = (Condition.TRANSACTION_UNKNOWN_ID.value, "there',
                '        failure = (Condition.TRANSACTION_ROLLBACK.value, "there',
            ),
            Change(
                "condition: str = Condition.TRANSACTION_ROLLBACK.value\n    ) -> None:",
                "condition: str = Condition.TRANSACTION_TIMEOUT.value\n    ) -> None:",
            ),
            Change(
                '                Condition.TRANSACTION_ROLLBACK,\n                f"the messages of',
                '                Condition.TRANSACTION_TIMEOUT,\n                f"the messages of',
            ),
            Change(
                '                Condition.TRANSACTION_ROLLBACK.value, "discharged while',
                '                Condition.TRANSACTION_UNKNOWN_ID.value, "discharged while',
            ),
            Change(
                '                Condition.TRANSACTION_UNKNOWN_ID.value, "an outcome names',
                '                Condition.TRANSACTION_ROLLBACK.value, "an outcome names',
            ),
            Change(
                '            Condition.TRANSACTION_ROLLBACK.value, "a delivery of',
                '            Condition.TRANSACTION_UNKNOWN_ID.value, "a delivery of',
            ),
            Change(
                '                Condition.TRANSACTION_UNKNOWN_ID.value, "a flow names',
                '                Condition.TRANSACTION_ROLLBACK.value, "a flow names',
            ),
            Change(
                "            failure = work.failure\n        elif delivery.settled",
                "            pass\n        elif delivery.settled",
            ),
            Change(
                '            self._fail_transaction(Condition.TRANSACTION_ROLLBACK, f"{self._node.address!r} is gone")\n',
                '            self._fail_transaction(Condition.TRANSACTION_TIMEOUT, f"{self._node.address!r} is gone")\n',
            ),
        ),
    ),
]

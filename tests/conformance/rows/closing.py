"""2.7.7 to 2.7.9: detach, end and close."""

from __future__ import annotations

from tests.conformance.requirement import MUST, RULE, SHOULD, Change, need

_ERROR_WITHOUT_DETAILS = Change(
    'description=f"{about}{fault.description}"[: TEXT_LIMIT - len(rule)] + rule', "description=None"
)

REQUIREMENTS = [
    need(
        "2.7.7-1",
        RULE,
        "a detach frees its handle for other links",
        "session_uses_a_handle_and_a_name_again_when_the_link_is_over",
        "detach_waits_for_the_answer_and_frees_handle_and_name_then",
        mutants=(Change("if self._by_handle.pop(link.handle, None) is not None:", "if False:"),),
    ),
    need(
        "2.7.7-2",
        SHOULD,
        "the error of a detach has details of its cause",
        "error_of_a_detach_says_what_was_wrong",
        mutant=_ERROR_WITHOUT_DETAILS,
    ),
    need(
        "2.7.8-1",
        SHOULD,
        "the error of an end has details of its cause",
        "error_of_an_end_says_what_was_wrong",
        mutant=_ERROR_WITHOUT_DETAILS,
    ),
    need(
        "2.7.9-1",
        MUST,
        "an orderly end of a connection writes a close",
        "leaving_goes_at_once_when_the_peer_closes_too",
        "leaving_when_cancelled_writes_the_close_and_does_not_wait",
        "cancelled_service_closes_every_connection_with_forced",
        "connection_answers_open_and_close_that_come_in_one_read",
        "close_is_on_channel_0_whatever_channels_are_in_use",
        mutants=(
            Change("self._stack.close(error, trio.current_time())", "pass"),
            Change("self.write_buffer.write_frame(encode_frame(0, encode(Close(error=error))))", "pass"),
            Change(
                "self.write_buffer.write_frame(encode_frame(0, encode(Close(error=error))))",
                "self.write_buffer.write_frame(encode_frame(1, encode(Close(error=error))))",
            ),
        ),
    ),
    need(
        "2.7.9-2",
        SHOULD,
        "the error of a close has details of its cause",
        "error_of_a_close_says_what_was_wrong",
        "connection_keeps_the_description_of_an_error_when_it_fits",
        mutants=(
            _ERROR_WITHOUT_DETAILS,
            Change(
                "encode(Close(error=error))",
                "encode(Close(error=error and Error(condition=error.condition)))",
            ),
        ),
    ),
]

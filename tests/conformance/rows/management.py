"""G: requests to manage a container ("AMQP Management").

The product has the operations of the early working drafts; draft 16 is another protocol.
"""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, SHOULD, Change, need

_DRAFT_16 = "not offered: the product has the operations of the early drafts"

REQUIREMENTS = [
    need(
        "G-3-1",
        MUST,
        "a request for an operation of the management node itself has the type org.amqp.management, the name self, and "
        "no identity",
        "top_names_the_management_node_itself_in_its_requests",
        mutants=(
            Change('{"type": "org.amqp.management", "name": "self"}', '{"name": "self"}'),
            Change('{"type": "org.amqp.management", "name": "self"}', '{"type": "org.amqp.management"}'),
        ),
        gap="the container takes such requests without a type and a name too",
    ),
    need(
        "G-3-2",
        SHOULD,
        "the node has the operations QUERY, GET-TYPES, GET-ANNOTATIONS, GET-ATTRIBUTES, GET-OPERATIONS and "
        "GET-MGMT-NODES",
        "management_tells_what_there_is_to_manage",
        "management_lists_nodes_by_type_attribute_and_place",
        mutants=(
            Change('            "QUERY": self._query,\n', ""),
            Change('            "GET-TYPES": self._get_types,\n', ""),
            Change('            "GET-ANNOTATIONS": self._get_annotations,\n', ""),
            Change('            "GET-ATTRIBUTES": self._get_attributes,\n', ""),
            Change('            "GET-OPERATIONS": self._get_operations,\n', ""),
            Change('            "GET-MGMT-NODES": self._get_nodes,\n', ""),
        ),
    ),
    need(
        "G-3-3",
        MAY,
        "the node has the operations REGISTER and DEREGISTER",
        gap="not offered: there are no other management nodes",
    ),
    need(
        "G-3-4",
        MUST,
        "the reply to an operation of the node that is done has the statusCode 200, and a map as an amqp-value",
        "management_answers_success_with_a_map_in_an_amqp_value",
        mutants=(
            Change('return 200, "OK", _Page(', 'return 202, "OK", _Page('),
            Change('body = {"attributeNames": body.names, "results": body.results}', "body = body.results"),
        ),
        gap="the body of the reply to GET-MGMT-NODES is a list",
    ),
    need(
        "G-3-5",
        MUST,
        "the attributes of a type are its own and those that it inherits",
        "management_tells_what_there_is_to_manage",
        mutant=Change(
            '"node": [*_COMMON, "senders", "receivers"]', '"node": [*_COMMON, "senders", "receivers", "x"]'
        ),
        gap="the operations that are listed are those of the type",
    ),
    need("G-16-1", MUST, "draft 16: AMQP_MANAGEMENT_V1_0 is offered or desired", gap=_DRAFT_16),
    need(
        "G-16-2",
        MUST,
        "draft 16: requests are as in HTTP, with discovery, collections of entities, etags and the statuses 200, 201, "
        "204, 404, 409, 410 and 415",
        gap=_DRAFT_16,
    ),
]

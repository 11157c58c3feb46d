"""Errors of the SASL layer."""

from __future__ import annotations

import pytest

from trio_amqp10 import sasl
from trio_amqp10.amqp10.spec.security import SaslCode
from trio_amqp10.core.errors import SecurityError


@pytest.mark.parametrize(
    ("code", "text", "temporary"),
    [
        (SaslCode.OK, "did not prove", False),
        (SaslCode.AUTH, "refused the credentials", False),
        (SaslCode.SYS, "a system error on its side", False),
        (SaslCode.SYS_PERM, "permanent system error", False),
        (SaslCode.SYS_TEMP, "may succeed", True),
    ],
)
def test_authentication_error_tells_the_codes_apart(code: SaslCode, text: str, temporary: bool) -> None:
    assert str(sasl.AuthenticationError(None, "PLAIN")).endswith(
        "broke the rules of the mechanism (mechanism PLAIN)"
    )
    error = sasl.AuthenticationError(code, "PLAIN")
    assert text in str(error)
    assert f"(mechanism PLAIN, code {code.value})" in str(error)
    assert (error.code, error.mechanism, error.temporary) == (code, "PLAIN", temporary)


def test_errors_of_the_sasl_layer_are_security_errors() -> None:
    for error in (
        sasl.AuthenticationError,
        sasl.NoAcceptableMechanismError,
        sasl.PlaintextPasswordError,
        sasl.SecurityDowngradeError,
    ):
        assert issubclass(error, SecurityError)

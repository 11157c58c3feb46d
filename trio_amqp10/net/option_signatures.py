"""Decorators that give functions the parameters that an options class declares.

Type checkers, editors, ``help()`` and ``inspect.signature`` show each parameter with its type and default.
"""

from __future__ import annotations

from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from trio_amqp10.core.number_fields import check_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

P = ParamSpec("P")
F = TypeVar("F", bound="Callable[..., Any]")
OptionsT = TypeVar("OptionsT")
R = TypeVar("R")
S = TypeVar("S")


def takes(options: Callable[P, OptionsT]) -> Callable[[Callable[[OptionsT], R]], Callable[P, R]]:
    """Call a function with an options object, made of the keyword arguments."""

    def decorate(function: Callable[[OptionsT], R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return function(_made(options, call, *args, **kwargs))

        return _show(call, _parameters(options), function)

    return decorate


def takes_on(
    options: Callable[P, OptionsT],
) -> Callable[[Callable[[S, OptionsT], R]], Callable[Concatenate[S, P], R]]:
    """Do the same as ``takes`` for a function whose first argument stays as it is.

    The first argument is usually ``self``.
    """

    def decorate(function: Callable[[S, OptionsT], R]) -> Callable[Concatenate[S, P], R]:
        @wraps(function)
        def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
            return function(self, _made(options, call, *args, **kwargs))

        first = next(iter(signature(function).parameters.values()))
        return _show(call, (first, *_parameters(options)), function)

    return decorate


def takes_as(
    model: Callable[Concatenate[Any, P], Any],
) -> Callable[[Callable[Concatenate[S, ...], R]], Callable[Concatenate[S, P], R]]:
    """Declare that a method has the parameters of ``model``, except the first."""

    def decorate(function: Callable[Concatenate[S, ...], R]) -> Callable[Concatenate[S, P], R]:
        first = next(iter(signature(function).parameters.values()))
        _show(function, (first, *list(_parameters(model))[1:]), function)
        return cast("Callable[Concatenate[S, P], R]", function)

    return decorate


def lists(options: Callable[..., object]) -> Callable[[F], F]:
    """Show the parameters of an options class instead of ``**options``."""

    def decorate(function: F) -> F:
        own = [one for one in _parameters(function) if one.kind is not Parameter.VAR_KEYWORD]
        return _show(function, (*own, *_parameters(options)), function)

    return decorate


def _parameters(of: Callable[..., object]) -> Iterable[Parameter]:
    return signature(of).parameters.values()


def _show(function: F, parameters: Iterable[Parameter], returning: Callable[..., object]) -> F:
    shown = Signature(list(parameters), return_annotation=signature(returning).return_annotation)
    vars(function)["__signature__"] = shown
    hints = {one.name: one.annotation for one in shown.parameters.values()}
    hints["return"] = shown.return_annotation
    function.__annotations__ = {name: hint for name, hint in hints.items() if hint is not Signature.empty}
    return function


def _made(
    options: Callable[P, OptionsT], call: Callable[..., object], *args: P.args, **kwargs: P.kwargs
) -> OptionsT:
    """Return the options object.

    Raises TypeError for arguments that do not fit, with the name of the decorated function, and LocalProtocolError for text
    in place of a number.
    """
    try:
        made = options(*args, **kwargs)
    except TypeError:
        expected = signature(options)
        for name in kwargs.keys() - expected.parameters.keys():
            raise TypeError(f"{call.__name__}() got an unexpected keyword argument {name!r}") from None
        try:
            expected.bind(*args, **kwargs)
        except TypeError as misfit:
            raise TypeError(f"{call.__name__}(): {misfit}") from None
        raise
    check_numbers(made)
    return made

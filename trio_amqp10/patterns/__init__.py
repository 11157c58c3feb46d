"""Patterns on links: requests and replies, transactions, tokens."""

from .cbs import SasTokens as SasTokens
from .cbs import TokenKeeping as TokenKeeping
from .cbs import TokenRefusedError as TokenRefusedError
from .cbs import TokenSource as TokenSource
from .cbs import keep_token as keep_token
from .cbs import put_token as put_token
from .requester import Requester as Requester
from .requester import RequesterOpening as RequesterOpening
from .requester import open_requester as open_requester
from .transaction import Transaction as Transaction
from .transaction import TransactionOpening as TransactionOpening
from .transaction import open_transaction as open_transaction

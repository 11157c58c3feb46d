"""What can be built on links, and often is: requests and their replies, transactions."""

from .requester import Requester as Requester
from .requester import RequesterOpening as RequesterOpening
from .requester import open_requester as open_requester
from .transaction import Transaction as Transaction
from .transaction import TransactionOpening as TransactionOpening
from .transaction import open_transaction as open_transaction

"""Management of a container: one model, which all who operate the container use.

``Container.management`` is the model; ``management_node`` is its face for clients of AMQP 1.0, the node ``$management``.
"""

from .definitions import Imported as Imported
from .definitions import LeftOut as LeftOut
from .depths import QueueDepths as QueueDepths
from .errors import ManagementError as ManagementError
from .listing import Listing as Listing
from .listing import Page as Page
from .management import Management as Management
from .status import AccountStatus as AccountStatus
from .status import BindingStatus as BindingStatus
from .status import ChannelStatus as ChannelStatus
from .status import ConnectionStatus as ConnectionStatus
from .status import ContainerStatus as ContainerStatus
from .status import ExchangeStatus as ExchangeStatus
from .status import LinkStatus as LinkStatus
from .status import MessageStatus as MessageStatus
from .status import MessageTotals as MessageTotals
from .status import NodeStatus as NodeStatus
from .status import ProtocolTotals as ProtocolTotals
from .status import QueueStatus as QueueStatus
from .status import QueueTotals as QueueTotals
from .status import Redriven as Redriven
from .status import StoreStatus as StoreStatus
from .status import SubscriptionStatus as SubscriptionStatus
from .status import Survey as Survey
from .status import TopicStatus as TopicStatus
from .status import TransactionStatus as TransactionStatus
from .status import UserStatus as UserStatus
from .status import VirtualHostStatus as VirtualHostStatus

__all__ = [
    "AccountStatus",
    "BindingStatus",
    "ChannelStatus",
    "ConnectionStatus",
    "ContainerStatus",
    "ExchangeStatus",
    "Imported",
    "LeftOut",
    "LinkStatus",
    "Listing",
    "Management",
    "ManagementError",
    "MessageStatus",
    "MessageTotals",
    "NodeStatus",
    "Page",
    "ProtocolTotals",
    "QueueDepths",
    "QueueStatus",
    "QueueTotals",
    "Redriven",
    "StoreStatus",
    "SubscriptionStatus",
    "Survey",
    "TopicStatus",
    "TransactionStatus",
    "UserStatus",
    "VirtualHostStatus",
]

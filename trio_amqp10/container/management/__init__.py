"""Management of a container: one model, which all who operate the container use.

``Container.management`` is the model; ``management_node`` is its face for clients of AMQP 1.0, the node ``$management``, and
``remote_management`` has the same calls for these clients.
"""

import typing as _typing

if _typing.TYPE_CHECKING:
    from .depths import QueueDepths as QueueDepths
    from .errors import ManagementError as ManagementError
    from .errors import OperationRefusedError as OperationRefusedError
    from .frame_watch import FrameWatch as FrameWatch
    from .listing import Listing as Listing
    from .listing import Page as Page
    from .management import Management as Management
    from .remote_listing import RemoteListing as RemoteListing
    from .remote_management import RemoteManagement as RemoteManagement
    from .remote_management import RemoteManagementOpening as RemoteManagementOpening
    from .status import AccountStatus as AccountStatus
    from .status import BindingStatus as BindingStatus
    from .status import ChannelStatus as ChannelStatus
    from .status import ConnectionStatus as ConnectionStatus
    from .status import ContainerStatus as ContainerStatus
    from .status import ExchangeStatus as ExchangeStatus
    from .status import FramePage as FramePage
    from .status import Imported as Imported
    from .status import LeftOut as LeftOut
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
    from .status import WatchedFrame as WatchedFrame
else:
    from trio_amqp10.core.lazy_names import lazy_names as _lazy_names

    __getattr__, __dir__, __all__ = _lazy_names(
        __name__,
        {
            ".depths": "QueueDepths",
            ".errors": "ManagementError OperationRefusedError",
            ".frame_watch": "FrameWatch",
            ".listing": "Listing Page",
            ".management": "Management",
            ".remote_listing": "RemoteListing",
            ".remote_management": "RemoteManagement RemoteManagementOpening",
            ".status": (
                "AccountStatus BindingStatus ChannelStatus ConnectionStatus ContainerStatus "
                "ExchangeStatus FramePage Imported LeftOut LinkStatus MessageStatus MessageTotals "
                "NodeStatus ProtocolTotals QueueStatus QueueTotals Redriven StoreStatus "
                "SubscriptionStatus Survey TopicStatus TransactionStatus UserStatus "
                "VirtualHostStatus WatchedFrame"
            ),
        },
    )

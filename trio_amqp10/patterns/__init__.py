"""What can be built on links, and often is: requests and their replies."""

from .requester import Requester as Requester
from .requester import RequesterOpening as RequesterOpening
from .requester import open_requester as open_requester

"""A session of the requests library whose answers are bounded in size and time as a whole."""

import time
from io import BytesIO

from requests import Response, Session
from requests.exceptions import ChunkedEncodingError, ReadTimeout, RequestException
from urllib3.exceptions import HTTPError, ReadTimeoutError

PIECE_BYTES = 1 << 16


class TooMuchError(RequestException):
    """The answer was larger, or took longer, than allowed."""


class BoundedSession(Session):
    """Reads each answer within its bounds, for the library's own timeout starts anew with every byte.

    Proxies of the environment are not used: what is asked stands on the operator's own network.

    Args:
        total_s: longest time from the first line of an answer to its end.
        most_bytes: largest answer.
    """

    def __init__(self, *, total_s: float, most_bytes: int) -> None:
        super().__init__()
        self._total_s, self._most_bytes = total_s, most_bytes
        self.trust_env = False
        self.max_redirects = 0
        self.headers["Accept-Encoding"] = "identity"
        self.hooks["response"].append(self._read)

    def _read(self, answer: Response, **_arguments: object) -> None:
        """Read the body here, before the library would, and hand it over as a file."""
        try:
            answer.raw = BytesIO(self._body(answer))
        except ReadTimeoutError as error:
            raise ReadTimeout(str(error)) from error
        except HTTPError as error:
            raise ChunkedEncodingError(str(error)) from error

    def _body(self, answer: Response) -> bytes:
        until_s, body = time.monotonic() + self._total_s, bytearray()
        while piece := answer.raw.read1(PIECE_BYTES):
            body += piece
            if len(body) > self._most_bytes:
                answer.close()
                raise TooMuchError(f"more than {self._most_bytes} bytes")
            if time.monotonic() > until_s:
                answer.close()
                raise TooMuchError(f"not all of the answer within {self._total_s:g} s")
        answer.raw.release_conn()
        return bytes(body)

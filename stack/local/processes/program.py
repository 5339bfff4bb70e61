"""Where a program is: PATH, folders of system programs that a user's PATH leaves out, what `make stack` put aside."""

import os
import shutil
from pathlib import Path

from stack.errors import InputError

ALSO = ("/usr/local/sbin", "/usr/sbin", ".flashvector/bin")


def program(name: str) -> str:
    """The program `name`, which may also be a path.

    Raises:
        InputError: there is none.
    """
    folders = [os.environ.get("PATH", os.defpath), *(str(Path(folder).absolute()) for folder in ALSO)]
    found = shutil.which(name, path=os.pathsep.join(folders))
    if found is None:
        raise InputError(f"no program {name}: install it (make stack does), or name it in the configuration")
    return str(Path(found).absolute())

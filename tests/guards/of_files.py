"""The guards of the files and paths that a sample names."""

from __future__ import annotations

from guard import guard

FILES, CACHE = "media/files.py", "media/cache/folder.py"
FOLLOWS_LINKS = ("media/openat2.py", "_NO_SYMLINKS = 0x04", "_NO_SYMLINKS = 0")
JUDGES_NOTHING = (FILES, "if not regular or not inside or (", "if not regular or (")
REGULAR_ONLY = (
    (FILES, "            if status.st_mode & _FILE_TYPE == _REGULAR:\n", "            if True:\n"),
    (FILES, "regular = status.st_mode & _FILE_TYPE == _REGULAR", "regular = True"),
)

GUARDS = (
    guard(
        "is absolute and outside the roots",
        "the judgement before and after the open",
        (FILES, 'if os.path.isabs(path) and ".." not in path and path.startswith(self._written):', "if os.path.isabs(path):"),
        JUDGES_NOTHING,
    ),
    guard(
        "leaves the root by `..`",
        "the look for dots where most files are read",
        (FILES, ' or ".." in path or len(path) > _LONG_PATH)', " or len(path) > _LONG_PATH)"),
    ),
    guard(
        "leaves the root by `..`",
        "the look for dots where a file is opened under one root",
        (FILES, 'or "\\\\" in path or ".." in path):', 'or "\\\\" in path):'),
    ),
    guard(
        "leaves the root by `..`",
        "the look for dots where there are several roots",
        (FILES, '        if os.path.isabs(path) or ".." in path:', "        if os.path.isabs(path):"),
    ),
    guard("is a link to a file or folder outside", "the judgement of the descriptor", JUDGES_NOTHING),
    guard("is a link to a file or folder outside", "the call that follows no link", FOLLOWS_LINKS),
    guard(
        "is swapped for a link while it is read",
        "the path of the descriptor: the path that was given is judged",
        ("media/real_path.py", 'return os.readlink(f"/proc/self/fd/{descriptor}")', "return os.path.realpath(full)"),
    ),
    guard("is swapped for a link while it is read", "the call that follows no link", FOLLOWS_LINKS),
    guard("lies in a folder that was moved out of the root, or in a new one in its place", "the call that follows no link", FOLLOWS_LINKS),
    guard(
        "lies in another repository of a Hugging Face cache",
        "only the blobs of the same repository",
        ("media/real_path.py", '"/".join((*names[:index], "blobs", ""))', '"/".join((*names[: index - 1], ""))'),
        (FILES, 'real.startswith(blobs) and "/" not in real[len(blobs) :]', "real.startswith(blobs)"),
    ),
    guard(
        "lies in another repository of a Hugging Face cache",
        "only files directly among the blobs",
        (FILES, 'real.startswith(blobs) and "/" not in real[len(blobs) :]', "real.startswith(blobs)"),
    ),
    guard(
        "is a FIFO, device, socket, folder or file of `/proc`",
        "the open that does not wait",
        (FILES, 'for _name in ("O_NONBLOCK", "O_NOCTTY",', 'for _name in ("O_NOCTTY",'),
        ("media/openat2.py", 'FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) |', "FLAGS = os.O_RDONLY |"),
    ),
    guard("is a FIFO, device, socket, folder or file of `/proc`", "only regular files", *REGULAR_ONLY),
    guard(
        "is a FIFO, device, socket, folder or file of `/proc`",
        "the judgement before the open",
        (FILES, "            if self._allows(real):\n", "            if True:\n"),
    ),
    guard(
        "states a wrong size, grows or is empty",
        "the count of bytes against the stated size",
        (FILES, "                    if len(data) == size:\n                        self._judged", "                    if True:\n                        self._judged"),
        (FILES, "                if len(data) == size:\n                    return data\n                return self._rest", "                if data:\n                    return data\n                return self._rest"),
    ),
    guard(
        "states a wrong size, grows or is empty",
        "the limit that counts what is read",
        (FILES, "        while count <= self._limit:", "        while True:"),
        (FILES, "        if count > self._limit:\n", "        if False:\n"),
    ),
    guard(
        "states a wrong size, grows or is empty",
        "the refusal of an empty file",
        (FILES, "        if not count:\n            raise empty(name)\n", ""),
    ),
    guard("has hundreds of kilobytes of name", "the limit on its length", (FILES, "        if len(path) > _LONG_PATH:\n", "        if False:\n")),
    guard(
        "is a name of another system, holds a NUL or `%2e%2e`",
        "the refusal of names of Windows",
        (FILES, "        check_foreign(path, name, on_windows=WINDOWS)\n", ""),
    ),
    guard(
        "is a name of another system, holds a NUL or `%2e%2e`",
        "the decoding that is done once",
        ("media/urls.py", 'path = unquote_to_bytes(text).decode("utf-8")', 'path = unquote_to_bytes(unquote_to_bytes(text)).decode("utf-8")'),
    ),
    guard(
        "is a name of another system, holds a NUL or `%2e%2e`",
        "the look for a NUL before the call that takes it for the end",
        ("media/openat2.py", '    if "\\0" in path:', "    if False:"),
    ),
    guard(
        "is a web page, a Git LFS pointer or a secret named `.jpg`",
        "the look at the first bytes of what is sent",
        (
            "media/type_check.py",
            '        rest = "a format that is not supported" if',
            '        return Kind("unknown"), f"{modality}/unknown"\n        rest = "a format that is not supported" if',
        ),
    ),
    guard(
        "is a web page, a Git LFS pointer or a secret named `.jpg`",
        "the look at the first bytes of what goes by its name",
        ("media/reader.py", "        checked_type(head, ref.modality, name)\n", ""),
    ),
    guard(
        "is named a hundred times in one row",
        "reading it once",
        ("media/request_reader.py", "known = None if key is None else self.files.get(key) or self._before.get(key)", "known = None"),
    ),
    guard(
        "is named a hundred times in one row",
        "the limit on the bytes of a request",
        ("media/request_reader.py", "        if self._bytes_left < 0:", "        if False:"),
    ),
    guard(
        "is named a hundred times in one row",
        "the limit on the media of a request",
        ("media/request_reader.py", "        if not self._media_left:", "        if False:"),
    ),
    guard(
        "is a damaged or foreign entry of a shared cache",
        "the checksum",
        ("media/cache/entry.py", " or hashlib.sha256(rest).digest() != packed[len(_MAGIC) : start]:", ":"),
    ),
    guard(
        "is a damaged or foreign entry of a shared cache",
        "the key in the entry",
        ("media/cache/entry.py", " or type(unchanged) is not bool or named != key:", " or type(unchanged) is not bool:"),
    ),
    guard(
        "is a damaged or foreign entry of a shared cache",
        "following no link",
        (CACHE, 'for _name in ("O_NOFOLLOW", "O_CLOEXEC",', 'for _name in ("O_CLOEXEC",'),
    ),
    guard(
        "is a damaged or foreign entry of a shared cache",
        "the open that does not wait",
        (CACHE, '_READ |= getattr(os, "O_NONBLOCK", 0)', "_READ |= 0"),
    ),
    guard(
        "is a damaged or foreign entry of a shared cache",
        "the refusal of a folder to which others may write",
        (CACHE, "            self._is_safe = not fault\n            if fault:", "            self._is_safe = True\n            if False:"),
    ),
)  # fmt: skip

WITHOUT = {
    "is a name that a decoder would obey: `-`, `concat:`, `img%03d`": "no decoder is given a name: it gets bytes or a file in memory",
}
"""Threats against which no check can be switched off, and why."""

from enum import Enum

from . import NativeFile

class FileType(Enum):
    NotFound = 0
    Unknown = 1
    File = 2
    Directory = 3

class FileInfo:
    path: str
    mtime_ns: int
    type: FileType
    size: int | None

class FileSelector:
    def __init__(self, base_dir: str, *, recursive: bool = ..., allow_not_found: bool = ...) -> None: ...

class FileSystem:
    @staticmethod
    def from_uri(uri: str) -> tuple[FileSystem, str]: ...
    def open_input_stream(self, path: str) -> NativeFile: ...
    def open_output_stream(self, path: str) -> NativeFile: ...
    def get_file_info(self, selector: FileSelector) -> list[FileInfo]: ...
    def delete_file(self, path: str) -> None: ...

"""Whole texts as snapshots, one file each, named by the test."""

from __future__ import annotations

from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode


class TextFile(SingleFileSnapshotExtension):
    """`snapshot(extension_class=TextFile, name=...)`: the file is `NAME.txt`."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"

    @classmethod
    def get_snapshot_name(cls, *, test_location, index=0) -> str:
        return str(index)


class CudaFile(TextFile):
    file_extension = "cu"


class JsonFile(TextFile):
    file_extension = "json"

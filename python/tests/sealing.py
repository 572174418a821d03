"""Manifests that tests write, sealed as docs/format.md says."""

from __future__ import annotations

import json


def crc32c(data, crc=0):
    """CRC-32C as docs/format.md says it, bit by bit."""
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def entry(byte):
    for _ in range(8):
        byte = byte >> 1 ^ (byte & 1) * 0x82F63B78
    return byte


TABLE = [entry(byte) for byte in range(256)]


def write_manifest(path, manifest):
    """Writes the manifest of the graph at `path`, sealed anew."""
    unsealed = {key: value for key, value in manifest.items() if key != "manifest_crc32c"}
    body = json.dumps(unsealed, indent=2, ensure_ascii=False).removesuffix("\n}")
    text = f'{body},\n  "manifest_crc32c": "%08x"\n}}\n'
    (path / "manifest.json").write_text(text % crc32c((text % 0).encode()))

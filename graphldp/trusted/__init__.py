"""Mechanisms that see the true graph: a curator has to be trusted with everybody's links. For comparison alone.

edgerand(edges, nodes, epsilon, rng)            randomised response of every pair, by the curator
lapgraph(edges, nodes, epsilon, rng)            Laplace noise on the number of links and on every pair; the largest stay
priv_hrg(edges, nodes, epsilon, rng)            a random dendrogram of the graph, noisy chances at its nodes, new links
edge_rr(edges, nodes, epsilon, rng, private=)   the same with links of public people left as they are
private_people(edges, nodes, rho, rng)          who is private, so that a share rho of the links is among them
curated(name, edges, nodes, epsilon, rng, {})   any of these by its name, as a row of a table asks for it

Each returns a `graphldp.server.links.LinkEstimate`, whose facts state the epsilon of one link and what is not proved.
What they promise is central: epsilon for one link of the whole graph against those who see the result. Nobody is
protected from the curator, so no row of theirs is a local mechanism's equal.
"""

from __future__ import annotations

from graphldp.trusted.curators import CURATORS, check_curator, curated
from graphldp.trusted.dendrogram import Chain, Dendrogram, random_dendrogram, sample_dendrogram, sensitivity
from graphldp.trusted.hrg import CAVEAT, edge_rr, noisy_chances, priv_hrg, private_people
from graphldp.trusted.noise import edgerand, lapgraph

__all__ = [
    "CAVEAT",
    "CURATORS",
    "Chain",
    "Dendrogram",
    "check_curator",
    "curated",
    "edge_rr",
    "edgerand",
    "lapgraph",
    "noisy_chances",
    "priv_hrg",
    "private_people",
    "random_dendrogram",
    "sample_dendrogram",
    "sensitivity",
]

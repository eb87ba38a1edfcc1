"""Which pairs are linked."""

from graphldp.measures import share
from graphldp.tasks.base import TaskEntry

__all__ = ["ENTRY"]

ENTRY = TaskEntry(
    task="link-prediction",
    title="link prediction",
    learns=("links",),
    measures=(share("auc", "AUC"), share("average_precision", "average precision")),
    parts="edges",
    targets="links",
    guess="chance",
    predicts="scores of pairs of nodes, an order and no probability unless `probability` is there",
    public={"links": "the edges that are trained on"},
    options={"width": "link_width", "loss": "link_loss"},
    longer=1.25,  # 1.8 on Cora, where the public ones come to their playoff sooner than is counted
)

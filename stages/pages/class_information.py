"""What reports can say of a class at all, beside what methods made of them: for experiments on the synthetic family.

Nothing is trained for it: it follows from the family's law and the mechanisms'.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphldp.audit.information import class_entropy, class_information, feature_information, information_bound
from graphldp.client import own_budget, protocol
from graphldp.client.protocol import Sampled
from graphldp.datasets.options import Synthetic, with_settings
from graphldp.datasets.synthetic import word_chances
from graphldp.ledger import epsilon_text
from graphldp.methods import Role, method
from graphldp.randomness import generator
from graphldp.stages.grids.cell import Cell, value_text
from graphldp.stages.pages.tables import Background

__all__ = ["AXIS", "backgrounds_of"]

AXIS = "data.features"
_DRAWS = 4000


def backgrounds_of(cells: Sequence[Cell], seed: int) -> tuple[Background, ...]:
    """Return the bits of features and reports at every value of the dial `features`; nothing where it is no axis.

    Reports are those of each arm whose mechanism sends a few dimensions through a randomiser with few outputs (`mb`):
    for others the information is not computed, and the bound is what is known.
    """
    found = [cell for cell in cells if cell.dataset == "synthetic" and AXIS in dict(cell.axes)]
    arms = [cell for cell in found if method(cell.method).role is Role.PRIVATE and own_budget(cell.mechanism) is None]
    if not arms:
        return ()
    epsilons = sorted({cell.epsilon for cell in arms})
    devices = sorted({(cell.mechanism, tuple(sorted(cell.options.items()))) for cell in arms}, key=repr)
    columns: list[str] = []
    values: dict[str, tuple[float, ...]] = {}
    for cell in {dict(cell.axes)[AXIS]: cell for cell in found}.values():
        options = with_settings(Synthetic(), cell.data, "synthetic")
        table = word_chances(options)
        where = value_text(dict(cell.axes)[AXIS])
        entropy = class_entropy([1 / options.classes] * options.classes)
        whole = feature_information(table, draws=_DRAWS, rng=generator(seed, "information", where)).bits
        bits = {"words": whole}
        for epsilon in epsilons:
            budget = epsilon_text(epsilon)
            bits[f"most\n{budget}"] = information_bound(epsilon, entropy, whole)
            for mechanism, given in devices:
                device = protocol(mechanism, epsilon, options.dimensions, 0.0, 1.0, **dict(given))
                if isinstance(device, Sampled) and device.base.finite:
                    rng = generator(seed, "information", where, mechanism, epsilon)
                    name = f"{mechanism}\n{budget}"
                    bits[name] = class_information(device, table, draws=_DRAWS, rng=rng).bits
        columns = list(bits)
        values[where] = tuple(bits.values())
    return (Background(dataset="synthetic", axis=AXIS, columns=tuple(columns), values=values),)

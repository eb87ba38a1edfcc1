"""Stage audit: whether mechanisms keep their claims, as a table in JSON, in Markdown and as a page of the docs.

Also loads anybody's function from a file and audits it as a black box.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from graphldp import __version__
from graphldp.audit import (
    PROPERTIES,
    Audit,
    AuditOptions,
    AuditRow,
    BlackBoxOptions,
    Finding,
    audit_function,
    audit_gaussian,
    audit_rows,
    audit_same_law,
    audit_soft_threshold,
    audit_unbiased,
)
from graphldp.audit.budget import most_samples
from graphldp.audit.subject import subject_names
from graphldp.client.links import link_names
from graphldp.errors import DataError, OptionError
from graphldp.progress import Progress
from graphldp.stages.audit_curators import CuratorRow, section
from graphldp.stages.files.artifacts import write_json, write_text

__all__ = [
    "EPSILONS",
    "FURTHER",
    "audit_file",
    "audit_mechanisms",
    "finding_json",
    "loss_text",
    "markdown_table",
    "privacy_page",
    "problem_lines",
    "proven",
    "samples_text",
    "table_json",
    "write_audit",
]

EPSILONS = (0.01, 0.1, 1.0, 5.0, 10.0)  # the budgets of the docs' table
FURTHER = (1e-6, 1e-3, 50.0, 100.0)  # at which the docs tell the verdict alone


_HEADER = (
    "mechanism",
    "epsilon",
    "claimed",
    "exact loss",
    "enumerated",
    "lower bound",
    "fit p",
    "worst variance",
    "mean variance",
    "bias",
    "bits",
    "noticed",
    "verdict",
)


# What `--links` takes is audited under a name that says of what it is.
_AS_AUDITED = {name: f"links-{name}" for name in link_names() if f"links-{name}" in subject_names()}


def audit_mechanisms(
    mechanisms: Iterable[str],
    epsilons: Iterable[float],
    options: AuditOptions,
    progress: Progress | None = None,
    processes: int = 1,
) -> Audit:
    """Return the audit of these mechanisms; of everything that is registered if none is named."""
    asked = [_AS_AUDITED.get(name, name) for name in mechanisms]
    return audit_rows(asked or subject_names(), list(epsilons) or EPSILONS, options, progress, processes)


def table_json(audit: Audit) -> dict[str, Any]:
    """Return the audit as JSON-able values: the options, a row for each mechanism and budget, what was refused."""
    return {
        "kind": "audit",
        "version": __version__,
        "options": asdict(audit.options),
        "rows": [row.as_json() for row in audit.rows],
        "refused": [{"mechanism": name, "epsilon": epsilon, "reason": why} for name, epsilon, why in audit.refused],
    }


def write_audit(audit: Audit, output: Path) -> list[Path]:
    """Write audit.json, audit.md (the table alone) and privacy.md (the docs page); return their paths."""
    files = [output / name for name in ("audit.json", "audit.md", "privacy.md")]
    write_json(files[0], table_json(audit))
    write_text(files[1], markdown_table(audit))
    write_text(files[2], privacy_page(audit))
    return files


def markdown_table(audit: Audit) -> str:
    """Return the rows as a Markdown table."""
    lines = ["| " + " | ".join(_HEADER) + " |", "| --- |" + " ---: |" * (len(_HEADER) - 2) + " --- |"]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in audit.rows]
    for name, epsilon, _ in audit.refused:
        blank = ["-"] * (len(_HEADER) - 3)
        lines.append(f"| {name} | {_g(epsilon)} | {' | '.join(blank)} | refused |")
    return "\n".join(lines) + "\n"


def cells(row: AuditRow) -> list[str]:
    """Return a row's cells as text; large and small numbers in four digits."""
    claimed = _g(row.epsilon) + (f", {_g(row.delta)}" if row.delta else "")
    if row.epsilon == math.inf:
        verdict = "claims nothing"
    elif row.open:
        verdict = "no power"
    elif row.keeps:
        verdict = "keeps"
    else:
        verdict = "**fails**, as marked" if row.marked else "**FAILS**"
    return [
        row.mechanism,
        _g(row.nominal),
        claimed,
        loss_text(row.exact),
        loss_text(row.enumerated),
        _down(row.empirical.value),
        f"{row.fit.p:.2g}",
        _or_none(row.variance_worst),
        _or_none(row.variance_mean),
        _bias(row.bias),
        f"{row.bits:.4g}",
        _factor(row.noticed),
        verdict,
    ]


def samples_text(options: AuditOptions) -> str:
    """Return how many reports a test draws: fewer where a report may have very many values."""
    samples, least = options.samples, most_samples(options.dimensions)
    return str(samples) if samples <= least else f"{least} to {samples}"


def proven(rows: Iterable[AuditRow]) -> dict[str, str]:
    """Return, for each mechanism, at which of the audited budgets its claim was shown, in words."""
    by_name: dict[str, list[AuditRow]] = {}
    for row in rows:
        by_name.setdefault(row.mechanism, []).append(row)
    return {name: _range(own) for name, own in by_name.items()}


def _range(rows: list[AuditRow]) -> str:
    """Return runs of neighbouring budgets with the same verdict: 'keeps from 0.1 to 100; no power at 1e-06'."""
    runs: list[tuple[str, list[float]]] = []
    for row in sorted(rows, key=lambda one: one.nominal):
        verdict = cells(row)[-1].replace("*", "")
        if runs and runs[-1][0] == verdict:
            runs[-1][1].append(row.nominal)
        else:
            runs.append((verdict, [row.nominal]))
    words = [f"{verdict} {'at' if len(e) == 1 else 'from'} {' to '.join(_g(v) for v in dict.fromkeys((e[0], e[-1])))}"
             for verdict, e in runs]  # fmt: skip
    return "; ".join(words)


def privacy_page(audit: Audit, further: Audit | None = None, curators: Sequence[CuratorRow] = ()) -> str:
    """Return docs/privacy.md: the table, what its columns mean, and the rows that fail.

    `further` is an audit at other budgets, of which only the verdicts are told; `curators` are trusted with all links.
    """
    every = (*audit.rows, *(further.rows if further else ()))
    options = audit.options
    failing = {row.mechanism: row for row in reversed(audit.rows) if not row.keeps and not row.open}
    unseen = [row for row in every if row.open]
    lines = [
        "# Privacy of every mechanism",
        "",
        "Generated by `ldp docs` from the code; do not edit. The same table for other mechanisms, budgets or",
        "dimensions: `ldp audit`. How each number is found: [audit.md](audit.md).",
        "",
        f"Features per node: {options.dimensions}, in [{options.low:g}, {options.high:g}]. Reports per test: "
        f"{samples_text(options)}; seed {options.seed}.",
        "",
        "- **claimed**: epsilon (and delta) of everything that leaves the device, at most for anybody. With privacy",
        "  levels that is the highest level's; `epsilon` is then the lowest level's.",
        "- **exact loss**: from the law of the joint release, the public grid of real-valued reports included. For",
        "  Gaussian noise: the exact epsilon at the claimed delta. Rounded up.",
        "- **enumerated**: the same, found independently by writing out every report in 3 dimensions (2 with hidden",
        "  levels); for Gaussian noise the numerical privacy-loss distribution. The loss of `oue` and `subset`",
        "  depends on the dimensions and on the padding, which is 2 there, so that it differs from that of the row.",
        "- **lower bound**: from samples alone. All lower bounds of the table hold at once with 95 % confidence.",
        "  Small where the worst report is rare, and 0 where an epsilon is too small for this many samples to see.",
        "- **fit p**: smallest p-value of the shipped sampler against its law and of the tests of its calls (values of",
        "  a report, people, rows, ordinary values, sparse features, secure numbers); a row fails below 1e-8.",
        "- **variance, bias**: of the server's estimate of one coordinate, unreported ones included.",
        "- **noticed**: from which factor on the budget this many reports of the shipped sampler show it, nine times",
        "  in ten. The map from uniform numbers to reports is compared with the law without luck, and notices 1.5",
        "  wherever a row keeps its claim.",
        "- **verdict**: `no power` is neither kept nor failed: nothing speaks against the claim, but a sampler with",
        "  1.5 times the budget or an untouched last coordinate would have looked the same to the tests. Where a law",
        "  itself leaves nearly every value as it is (large budgets), the untouched coordinate is not asked for.",
        "- `rounds`: both rounds of a directed collection, half of the budget each; `survey`: whatever question of a",
        "  survey somebody is asked; `vote`: a vote for one of four classes.",
        "- `links-rr`, `links-dprr`, `links-blink`: one person's list of neighbours, a bit for each dimension; claimed",
        "  is the epsilon of one bit. Enumerated for four people, with both ends' reports of a relationship.",
        "",
        markdown_table(audit).rstrip(),
        "",
    ]
    lines += ["## Budgets for which each claim is shown", ""]
    if further:
        lines += [f"With {further.options.samples} reports per test at budgets outside of the table.", ""]
    lines += ["| mechanism | budgets |", "| --- | --- |"]
    lines += [f"| {name} | {words} |" for name, words in proven(every).items()]
    lines.append("")
    if unseen:
        lines += ["## No power: what it would take", ""]
        for row in unseen:
            words = row.open.removeprefix("no power: ")
            lines += [f"- `{row.mechanism}` at {_g(row.nominal)}: {words}."]
        lines.append("")
    if failing:
        lines += ["## Marked: the claim fails", ""]
        for name, row in failing.items():
            lines += [f"- `{name}`: {row.reason or row.verdict}. {_sentence(row.worst)}"]
        lines.append("")
    refused = [*audit.refused, *(further.refused if further else ())]
    if refused:
        lines += ["## Refused", ""]
        lines += [f"- {name} at {_g(epsilon)}: {why}" for name, epsilon, why in refused]
        lines.append("")
    lines += [section(curators)] if curators else []
    return "\n".join(lines)


def audit_file(
    target: str, epsilon: float | None, options: BlackBoxOptions, progress: Progress | None = None, **chosen: Any
) -> list[Finding]:
    """Return the findings about functions of a Python file.

    Args:
        target: FILE:FUNCTION, or FILE alone for every function that its `AUDIT` names.
        epsilon: the claimed budget; None takes the one in `AUDIT`, or 1.
        options: how to audit; inputs given in `AUDIT` apply unless the options name some.
        progress: told what is being done.
        chosen: `property`, to override that of `AUDIT`.
    """
    path, _, function = target.partition(":")
    module = _load(Path(path))
    entries: dict[str, dict[str, Any]] = getattr(module, "AUDIT", {})
    wanted = [function] if function else list(entries)
    if not wanted:
        raise OptionError(f"{path} names no function in AUDIT; say which one to audit: --module {path}:FUNCTION")
    return [_one(module, path, name, entries.get(name, {}), epsilon, options, progress, chosen) for name in wanted]


def finding_json(findings: Iterable[Finding]) -> dict[str, Any]:
    """Return findings about functions as JSON-able values."""
    return {"kind": "audit", "version": __version__, "findings": [finding.as_json() for finding in findings]}


def _one(
    module: ModuleType,
    path: str,
    name: str,
    entry: Mapping[str, Any],
    epsilon: float | None,
    options: BlackBoxOptions,
    progress: Progress | None,
    chosen: Mapping[str, Any],
) -> Finding:
    function = getattr(module, name, None)
    if not callable(function):
        public = sorted(key for key, value in vars(module).items() if callable(value) and not key.startswith("_"))
        raise OptionError(f"{path} has no function {name!r}; it has: {', '.join(public) or 'none'}")
    budget = float(entry.get("epsilon", 1.0)) if epsilon is None else epsilon
    if not options.inputs and entry.get("inputs"):
        options = replace(options, inputs=tuple(entry["inputs"]))
    prop = chosen.get("property") or entry.get("property", "privacy")
    if prop not in PROPERTIES:
        raise OptionError(f"property must be one of {', '.join(PROPERTIES)}; got {prop!r}")
    if prop == "unbiased":
        return audit_unbiased(function, budget, options, name=name)
    if prop == "soft-threshold":
        return audit_soft_threshold(function, budget, name=name)
    if prop == "gaussian":
        delta, width = float(entry.get("delta", 1e-5)), float(entry.get("sensitivity", options.high - options.low))
        return audit_gaussian(function, budget, delta, width, name=name)
    if prop == "same-law":
        reference = entry.get("reference")
        if not callable(reference):
            raise OptionError(f"{path}: AUDIT[{name!r}] needs the function to compare with under 'reference'")
        return audit_same_law(function, reference, budget, options, name=name, other=reference.__name__)
    return audit_function(function, budget, options, name=name, progress=progress)


def _load(path: Path) -> ModuleType:
    if not path.is_file():
        raise DataError(f"{path} is not a file; give --module FILE.py:FUNCTION")
    spec = importlib.util.spec_from_file_location(f"graphldp_audited_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise DataError(f"{path} is not a Python file; give --module FILE.py:FUNCTION")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses in the file look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise DataError(f"{path} cannot be loaded: {type(error).__name__}: {' '.join(str(error).split())}") from error
    return module


def problem_lines(audit: Audit) -> list[str]:
    """Return what a person must know about the mechanisms that fail: one of their rows each, and the other budgets."""
    failing: dict[str, list[AuditRow]] = {}
    for row in audit.rows:
        if not row.keeps and not row.open:
            failing.setdefault(row.mechanism, []).append(row)
    lines = []
    for name, rows in failing.items():
        first, others = rows[0], ", ".join(f"{row.nominal:g}" for row in rows[1:])
        mark = "marked: " if first.marked else ""
        also = f" (also at {others})" if others else ""
        lines.append(f"{mark}{name} at epsilon {first.nominal:g}{also} {first.verdict}")
        if first.reason:
            lines.append(f"  its own reason: {first.reason}")
    unseen = [row for row in audit.rows if row.open]
    return lines + [f"{row.mechanism} at epsilon {row.nominal:g}: {row.open}" for row in unseen]


def _g(value: float, digits: int = 6) -> str:
    return f"{value:.{digits}g}"


def loss_text(number: float) -> str:
    """Return a loss in five digits, rounded up but for the last bits of float64."""
    if not math.isfinite(number) or number == 0:
        return f"{number:g}"
    scale = 10.0 ** (4 - math.floor(math.log10(number)))
    return f"{math.ceil(number * scale * (1 - 1e-10)) / scale:.5g}"


def _down(number: float) -> str:
    """Return a lower bound in four digits, rounded down."""
    if number <= 0:
        return "0"
    scale = 10.0 ** (3 - math.floor(math.log10(number)))
    return f"{math.floor(number * scale) / scale:.4g}"


def _or_none(number: float) -> str:
    return "-" if math.isnan(number) else _g(number, 4)


def _factor(number: float) -> str:
    """Return a factor in three digits, rounded up."""
    if math.isnan(number):
        return "-"
    return "none" if math.isinf(number) else f"{math.ceil(number * 100 - 1e-9) / 100:.4g}"


def _bias(number: float) -> str:
    if math.isnan(number):
        return "-"
    return "0" if number < 1e-5 else f"{number:.2g}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."

"""What papers claim, what their code does, and what is true: one list, from which docs/errata.md is written."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ERRATA", "FAULTS", "Erratum", "Fault", "errata_of"]


class Erratum(NamedTuple):
    """A statement of a paper that does not hold.

    Attributes:
        key: its number.
        where: paper and place.
        claim: what is printed.
        truth: what holds.
        here: what is done here; "-" where there is nothing to do.
        mechanisms: registered names that it concerns.
        by: what does it, as `module:object`; empty where nothing is done.
    """

    key: str
    where: str
    claim: str
    truth: str
    here: str
    mechanisms: tuple[str, ...] = ()
    by: tuple[str, ...] = ()


class Fault(NamedTuple):
    """A defect of published code, re-created as an example that the audit convicts.

    Attributes:
        key: its number, that of its file in examples/published_faults.
        where: which code.
        fault: what it does.
        effect: what that costs.
        mechanisms: registered names whose published code it is.
    """

    key: str
    where: str
    fault: str
    effect: str
    mechanisms: tuple[str, ...] = ()


_GAUSS = ("gm", "ag")
_SAMPLED = ("mb", "mlr", "pm", "sw")

ERRATA = (
    Erratum(
        "E1", "PPGNN II-D2", "noise of variance 2 ln(1.25/delta)/epsilon^2 is (epsilon, delta)-LDP on [-1, 1]",
        "the sensitivity 2 is missing, and the formula is proved for epsilon < 1 alone; at epsilon 1 and delta "
        "1e-5 the "
        "exact epsilon is 1.61", "sensitivity high - low; `gm` refuses budgets at which its formula fails", _GAUSS,
        by=("graphldp.client.mechanisms.gm:ClassicalGaussian",),
    ),
    Erratum(
        "E2", "PPGNN II-D2, TOGL D.3", "epsilon/d for each coordinate keeps (epsilon, delta), or is epsilon-LDP",
        "it composes to (epsilon, d delta), and Gaussian noise is never pure",
        "the budget is spent jointly, with sensitivity (high - low) sqrt(d); `composition=split` divides delta too",
        _GAUSS,
        by=("graphldp.client.protocol:COMPOSITIONS",),
    ),
    Erratum(
        "E3", "PPGNN Thm 1, TOGL 3.1, rule of LPGNN and UPGNet", "m = floor(epsilon/2.2), 5/11 or 1/2.18 is best",
        "the best share epsilon/m of multi-bit solves sinh t = 2t, t = 2.1773, and its floor is not the best whole "
        "number: up to 35 % more variance", "m minimises the worst variance; the papers' floors are options of "
        "`m_rule`",
        ("mb", "mlr", "pm", "sw", "ppm"),
        by=("graphldp.client.protocol:best_m", "graphldp.client.protocol:M_RULES"),
    ),
    Erratum(
        "E4", "PPGNN III-B, Table III", "MLR improves on multi-bit",
        "they have the same law; the users of the PPM rows hold on average 6.2 times the budget of the MB row",
        "tables show the users' mean and largest budget beside the nominal one", ("mlr", "mb", "ppm", "ppm-public"),
        by=("graphldp.stages.pages.tables:TableRow.mean_epsilon", "graphldp.stages.pages.tables:TableRow.max_epsilon"),
    ),
    Erratum(
        "E5", "PPGNN Thm 5, Alg. 2 and 3", "the pair of features and level has epsilon^tau-LDP",
        "between two levels the loss is infinite: the size of a value, the number of values and the support of "
        "the level "
        "each name it; for known levels the features have (1-gamma) epsilon^tau",
        "`ppm` is marked; `ppm-public` declares levels public, `ppm-safe` protects the pair with a larger, "
        "stated budget",
        ("ppm", "ppm-public", "ppm-safe"),
        by=(
            "graphldp.client.mechanisms.ppm:PersonalisedPerturbation",
            "graphldp.client.mechanisms.ppm_public:PublicLevels",
            "graphldp.client.mechanisms.ppm_safe:SafePersonalised",
        ),
    ),
    Erratum(
        "E6", "PPGNN Eq. 6", "outputs within b of the level, among 1..f+2b, are the likely ones",
        "then the probabilities sum to less than 1 for levels up to b, and the top b outputs are never likely",
        "the window is g..g+2b", ("esw", "ppm", "ppm-safe"),
        by=("graphldp.client.mechanisms.esw:ExtendedSquareWave",),
    ),
    Erratum(
        "E7", "PPGNN Alg. 3 line 4", "randomising the level with gamma epsilon^tau is LDP",
        "budget, window and support then depend on the secret", "`ppm-safe` uses one public "
        "budget", ("ppm", "ppm-safe"),
        by=("graphldp.client.mechanisms.ppm_safe:SafePersonalised",),
    ),
    Erratum(
        "E8", "PPGNN III-B1", "m' follows from the budget of the reported level",
        "that budget is undefined for reports above h, and (1-gamma) is forgotten; Algorithm 3 does not do it",
        "`ppm-safe` decodes first and uses the features' share", ("ppm", "ppm-safe"),
        by=("graphldp.client.mechanisms.ppm_safe:SafePersonalised",),
    ),
    Erratum(
        "E9", "PPGNN IV-A3", "the budgets are epsilon, 2 epsilon, ..., 2^h epsilon for levels 1..h",
        "these are h + 1 values", "level t has epsilon 2^(t-1)", ("ppm", "ppm-public", "ppm-safe", "pldp"),
        by=("graphldp.client.levels:Personalised.budgets",),
    ),
    Erratum(
        "E10", "PPGNN Eq. 12, Alg. 4", "neighbours are weighted by their reported levels",
        "the reports are shifted by b and range to f + 2b; the inverse variance grows with the square of the "
        "budget; the "
        "algorithm names the true level as its input", "levels are decoded first", ("ppm", "ppm-public", "ppm-safe"),
        by=("graphldp.server.weights:decode_levels",),
    ),
    Erratum(
        "E11", "PPGNN IV-F4", "the effective privacy budget grows with m",
        "the total stays the same and each coordinate's share falls", "-", ("mlr", "ppm"),
    ),
    Erratum(
        "E12", "PPGNN IV-E", "PPM resists attacks at the guarantee of LPGNN", "the budgets differ by up to 16 times",
        "`ldp attack --by-level` has a row for each level: at epsilon 1 on Cora the most telling report makes "
        "an attacker who is 1.3 % sure of an attribute 3.2 % sure with `mb`, with `ppm` 2.0 % at the lowest level and "
        "33.8 % at the fourth",
        ("ppm",),
        by=("graphldp.client.levels:Personalised.level_loss",),
    ),
    Erratum(
        "E13", "PPGNN II-D3, TOGL Eq. 10 and 33", "the sign of the one-bit mechanism is the value's estimate",
        "its mean is z tanh(epsilon/2m): biased", "`mb` is rectified by the server; `1b` is the unrectified row",
        ("1b", "mb"),
        by=("graphldp.client.mechanisms.mb:MultiBit", "graphldp.client.mechanisms.one_bit:OneBit"),
    ),
    Erratum(
        "E14", "TOGL Eq. 2 and 12", "PM and SW work on [alpha, beta]", "the formulas hold on [-1, 1] alone",
        "values are mapped from the declared range", ("pm", "sw"),
        by=("graphldp.client.mechanisms.pm:Piecewise", "graphldp.client.mechanisms.sw:SquareWave"),
    ),
    Erratum(
        "E15", "TOGL Eq. 34", "noise Lap(2/epsilon) on [alpha, beta]", "the loss is (beta - alpha) epsilon/2",
        "the scale is (high - low)/epsilon", ("lp",),
        by=("graphldp.client.mechanisms.lp:Laplace",),
    ),
    Erratum(
        "E16", "TOGL Eq. 36", "the analytic Gaussian mechanism", "what is printed is the classical formula, without "
        "sensitivity", "`ag` solves the exact condition", _GAUSS,
        by=("graphldp.client.mechanisms.ag:AnalyticGaussian",),
    ),
    Erratum(
        "E17", "TOGL 4, C.4 and D.4", "two rounds of epsilon/2 with m = floor(2 epsilon/5)",
        "m must follow from the round's budget: as printed 19 to 23 % more variance, or twice the budget",
        "each round chooses m from its own share", ("pm", "sw"),
        by=("graphldp.client.directed:second_round",),
    ),
    Erratum(
        "E18", "TOGL Alg. 1 line 8, phase III", "rectifying makes the mean right",
        "d/m is wrong there: fixed coordinates are inflated d/m times, the others shrunk",
        "each coordinate counts by its own inclusion probability", ("pm", "mb"),
        by=("graphldp.server.selection:rectify_directed",),
    ),
    Erratum(
        "E19", "TOGL 3.1", "2/5 minimises the error of PM and SW",
        "the best shares are 2.42 for PM and 2.15 for the unbiased SW; the raw SW has none", "m from the law",
        ("pm", "sw", "hds"),
        by=("graphldp.client.protocol:best_m",),
    ),
    Erratum(
        "E20", "TOGL Eq. 13, UPGNet Eq. 16", "a rectified value is at most d/m (e^(epsilon/2)+1)/(e^(epsilon/2)-1)",
        "the exponent is epsilon/(2m), and the error is bounded by one more", "the bound comes from the law", ("pm",),
        by=("graphldp.client.mechanisms.pm:Piecewise",),
    ),
    Erratum(
        "E21", "TOGL Prop. 1, C.1", "an error of 1/sqrt(n) is conservatively bounded by 1/n", "1/n is smaller", "-",
    ),
    Erratum(
        "E22", "TOGL Eq. 38", "links are perturbed as in BLINK",
        "the formula is plain randomised response; BLINK also spends on degrees, and 2 epsilon if both ends report",
        "`links: rr` is that formula, `links: blink` spends on degrees, too; what a relationship loses, with one end's "
        "or both ends' reports, stands in the ledger; [links](links.md)",
        by=("graphldp.client.links.rr:LinkRandomisedResponse", "graphldp.client.links.blink:Blink"),
    ),
    Erratum(
        "E23", "TOGL 3.2", "the guarantee covers the whole pipeline",
        "phase II reads raw labels, and its result is broadcast",
        "the labels of training nodes alone are read: public ones, or with `--labels krr` what people have sent, whose "
        "budget the ledger adds; [labels](labels.md)",
        by=("graphldp.server.attributes:score_attributes", "graphldp.experiment.server_view:ServerView"),
    ),
    Erratum(
        "E24", "TOGL D.5", "rows CLDP and PLDP", "no metric, alpha or set of levels is given: not reproducible",
        "points and levels are public options, compared at equal epsilon", ("cldp", "pldp"),
        by=("graphldp.client.mechanisms.cldp:Condensed", "graphldp.client.mechanisms.ppm_public:PersonalisedLDP"),
    ),
    Erratum(
        "E25", "TOGL B", "SW perturbs with exponentially decaying probability", "it has two constant levels", "-",
        ("sw",),
    ),
    Erratum(
        "E26", "UPGNet Thms 6 and 7", "the best mu_1 is tau_2 B, and NFR selects features",
        "mu_2 is meant; on multi-bit reports thresholding before aggregation is a mere factor",
        "thresholds act on deviations from the fill, after aggregation where they are to select", ("mb",),
        by=("graphldp.server.thresholds:nfr_before", "graphldp.server.thresholds:nfr_after"),
    ),
    Erratum(
        "E27", "UPGNet 3.1.1", "unreported coordinates are 0 and data lie in [-1, 1]",
        "the code has [0, 1], the middle as fill for multi-bit and 0 for PM", "`fill` is an option and is recorded",
        _SAMPLED,
        by=("graphldp.client.vector:FILLS",),
    ),
    Erratum(
        "E28", "LDP-GE Eq. 6", "P[-1] = (e-1)/(e+1) - ...", "the two probabilities then sum to e/(e+1)",
        "e/(e+1) - ...", ("1b", "mb"),
        by=("graphldp.client.mechanisms.mb:MultiBit", "graphldp.client.mechanisms.one_bit:OneBit"),
    ),
    Erratum(
        "E29", "LDP-GE Fig. 1, III-A", "SW has considerably less variance than PM up to epsilon 3.5",
        "it compares a report whose mean is shrunk; the raw variances cross at 3.68, the raw squared errors at "
        "3.18, and "
        "the rectified SW is never below PM", "[the comparison](mechanisms/compare.md) shows both",
        ("sw", "hds", "hds-rectified"),
        by=(
            "graphldp.client.mechanisms.hds:HighDimensionalSquareWave",
            "graphldp.client.mechanisms.hds:RectifiedSquareWave",
        ),
    ),
    Erratum(
        "E30", "LDP-GE Thm 2", "an error of O(log(d/delta)) beats O(d log(d/delta)/epsilon)",
        "the constant 0 has such an error too; what counts is the signal, which is shrunk as well",
        "`hds-rectified` beside `hds`; tables have the floor of no features at all", ("hds", "hds-rectified"),
        by=("graphldp.client.mechanisms.hds:RectifiedSquareWave", "graphldp.methods:Role"),
    ),
    Erratum(
        "E31", "LDP-GE proofs of Thms 2 and 4", "the rows of the propagation matrix sum to 1", "only for r = 0", "-",
    ),
    Erratum(
        "E32", "LDP-GE Alg. 2", "zeros prevent privacy leakage",
        "they protect nothing; that the indices do not depend on the data does", "-", ("hds",),
    ),
    Erratum(
        "E33", "HeteroRR App. A", "the ratio of two probabilities, in the proof",
        "a sign is reversed and the normaliser missing; the claimed budget is nevertheless exactly right",
        "the loss is computed from the law", ("featurerr",),
        by=("graphldp.client.mechanisms.featurerr:FeatureResponse",),
    ),
    Erratum("E34", "HeteroRR App. A", "strong composition", "basic composition is what is used", "-", ("featurerr",)),
    Erratum(
        "E35", "HeteroRR Alg. 1 lines 7-11", "closed bins in a loop that changes the value",
        "every value cascades into the last bin", "each value is put into its bin once", ("featurerr",),
        by=("graphldp.client.mechanisms.featurerr:FeatureResponse",),
    ),
    Erratum(
        "E36", "HeteroRR Alg. 1 lines 3-6", "values are normalised and budgets follow the scores",
        "the range must be public, shares at least 0, and scores independent of the private record",
        "public range; shares are clipped and normalised; scores are an input whose budget is "
        "counted", ("featurerr",),
        by=("graphldp.client.mechanisms.featurerr:FeatureRR", "graphldp.client.mechanisms.featurerr:shares"),
    ),
    Erratum(
        "E37", "HeteroRR App. C, Fig. 10", "FeatureRR has the lowest expected error",
        "a biased estimate is compared in L1 with unbiased ones", "[the comparison](mechanisms/compare.md) "
        "shows both",
        ("featurerr",),
        by=("graphldp.client.mechanisms.featurerr:FeatureRR",),
    ),
    Erratum(
        "E38", "HeteroRR Alg. 2 line 14", "acceptance with exp(epsilon L/Delta)",
        "the exponential mechanism has 2 Delta: twice the budget as printed",
        "the chain of `graphldp.trusted` has the 2", by=("graphldp.trusted.dendrogram:sample_dendrogram",),
    ),
    Erratum(
        "E39", "HeteroRR Alg. 2", "public and private steps interleaved until converged",
        "the stationary law is not the exponential mechanism's, and finitely many steps are not pure DP",
        "a fixed number of steps, and every result says what is not proved", by=("graphldp.trusted.hrg:edge_rr",),
    ),
    Erratum(
        "E40", "HeteroRR Alg. 3", "fresh noise on one count for every child, min(1, .) alone",
        "(1 + children) times the budget, and negative probabilities; EdgeRR needs a trusted curator",
        "noise is drawn once for a node and reused below it, chances are clipped on both sides; `links: edgerr` is for "
        "comparison, and its promise stands in a unit of its own", by=("graphldp.trusted.hrg:noisy_chances",),
    ),
    Erratum(
        "E41", "TOGL Table 9", "the five selected attributes have a Jaccard similarity of 0.78 over ten runs",
        "with its own options on Cora it is 0.005 (FDA) and 0.002 (SMA) at epsilon 10, and 0.002 by chance: the first "
        "round selects at random", "`ldp selection` measures it; [selection](selection.md)",
        by=("graphldp.stages.selection:measure_selection",),
    ),
    Erratum(
        "E42", "TOGL Tables 10 and 11, PPGNN Fig. 5", "attack accuracies of 18 % with privacy and 97 % without show "
        "protection",
        "an attribute is 0 or 1 and 98.7 % of the people do not have it: guessing \"no\" beats both, and guessing the "
        "opposite of an attack that is right in 18 % is right in 82 %",
        "true less false positives, beside what epsilon allows; [the attack](attack.md)",
        by=("graphldp.stages.attack:attack", "graphldp.adversary.bounds:advantage_bound"),
    ),
    Erratum(
        "E43", "TOGL D.5", "per-attribute protection is enforced uniformly, whether an attribute is selected or not",
        "everybody reports the first rho m selected attributes: an attacker's advantage on one of them is 46 "
        "points with PM at epsilon 5 to 15, on another attribute 0.1 to 0.3; the whole report keeps its epsilon",
        "`ldp selection` shows both; [selection](selection.md)",
        by=("graphldp.stages.selection:measure_selection",),
    ),
)  # fmt: skip

FAULTS = (
    Fault(
        "R1", "PrivGE (LDP-GE), square wave", "the input is overwritten by the left piece before the others use it",
        "infinite loss, and a mean that falls where it should rise; all HDS results rest on it", ("sw", "hds"),
    ),
    Fault(
        "R2", "PrivGE, multi-bit and PM", "unreported coordinates are set to 0 after values are moved to their range",
        "a bias of -(1 - m/d) times the middle of the range", ("mb", "pm"),
    ),
    Fault(
        "R3", "PrivGE, scaler", "columns are scaled and recovered by private extremes; constant ones are sent "
        "as they are",
        "one person's change moves everybody's reports", ("mb", "pm", "hds"),
    ),
    Fault(
        "R4", "PrivGE and UPGNet", "a call divides the object's budget by m, and leaves it so",
        "the second call is another mechanism", ("mb", "pm", "hds"),
    ),
    Fault(
        "R5", "code of PPGNN, level randomiser", "independent coins, the largest winner is sent, window floored to 0",
        "infinite loss: no report is below the true level", ("esw", "ppm"),
    ),
    Fault(
        "R6", "code of PPGNN, features", "everybody reports as many dimensions as the person with the most",
        "up to 7 (epsilon 1) or 22 (epsilon 3) times the features' budget", ("ppm",),
    ),
    Fault(
        "R7", "code of PPGNN, estimate", "drawn with the true level, rectified with the reported one; m not "
        "capped by d",
        "biased", ("ppm",),
    ),
    Fault(
        "R8", "LPGNN, UPGNet, code of PPGNN", "ranges from the data, constant columns dropped",
        "cannot be computed on a device, and tells of single people", ("mb", "pm"),
    ),
    Fault(
        "R9", "LPGNN, analytic Gaussian", "sigma is searched to an absolute 1e-12 on delta",
        "for a delta of 1e-13 the exact one is up to 6.6 times as large", ("ag",),
    ),
    Fault(
        "R10", "UPGNet, NFR", "two masks in place, the second on what the first has changed",
        "values between C and 2C are lost: no soft threshold",
    ),
    Fault(
        "R11", "DPGNN, PM-SUB", "the right tail lacks its uniform number",
        "a quarter of the reports at -0.5 are a number that belongs to that value", ("pm-sub",),
    ),
    Fault(
        "R12", "code of BLINK, randomised response", "one diagonal too many is kept",
        "both ends of the pairs (i, i+1) report: 2 epsilon",
    ),
)  # fmt: skip


def errata_of(mechanism: str) -> list[Erratum | Fault]:
    """Return the errata and faults that concern a mechanism."""
    return [entry for entry in (*ERRATA, *FAULTS) if mechanism in entry.mechanisms]

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from graphldp.datasets import names, spec, with_settings
from graphldp.datasets.options import LargestClasses, Synthetic, Traffic, ValueRange
from graphldp.datasets.registry import DatasetSpec, pinned_files, register
from graphldp.errors import OptionError

PLANETOID = {"cora", "citeseer", "pubmed"}
REAL = {
    *PLANETOID, "facebook", "twitch-es", "twitch-engb", "wikipedia", "github", "squirrel", "lastfm", "deezer", "co-cs",
    "co-phy", "flickr", "reddit", "ppi", "ogbn-arxiv",
}  # fmt: skip


def test_every_graph_is_registered_once_in_sorted_order() -> None:
    assert set(names()) == REAL | {"synthetic"}
    assert list(names()) == sorted(names())
    with pytest.raises(OptionError, match="'cora' is registered twice"):
        register(DatasetSpec(name="cora", description="", kind="planetoid", low=0, high=1))


def test_an_unknown_name_lists_the_valid_ones_and_the_nearest() -> None:
    with pytest.raises(OptionError, match=r"'facebok'; did you mean 'facebook'\? Valid: citeseer, co-cs, .*wikipedia"):
        spec("facebok")


@pytest.mark.parametrize("name", sorted(REAL | {"synthetic"}))
def test_every_entry_declares_a_range_that_holds_zero_and_says_what_it_is(name: str) -> None:
    entry = spec(name)
    assert entry.low <= 0 < entry.high
    assert entry.description
    assert entry.citation
    assert "\n" not in entry.description
    assert entry.expected.nodes
    assert entry.expected.classes or name == "ppi"  # of whose nodes each has a set of labels


def test_every_pin_is_used_and_well_formed() -> None:
    assert set(pinned_files()) == REAL - {"flickr", "reddit", "ppi", "ogbn-arxiv"}
    for name, files in pinned_files().items():
        used = {file.path for file in spec(name).files}
        unused = {file.path for file in files} - used
        # The fixed split's training rows are no file that a graph needs.
        assert unused == ({f"data/ind.{name}.x", f"data/ind.{name}.y"} if name in PLANETOID else set())
        for file in files:
            assert re.fullmatch("[0-9a-f]{40}", file.blob)
            assert re.fullmatch("[0-9a-f]{40}", file.commit)
            assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)
            assert file.address == f"{file.repository}/{file.commit}/{file.path}"


def test_listing_names_imports_no_heavy_package() -> None:
    code = (
        "import sys; from graphldp.datasets import names, spec; [spec(n) for n in names()];"
        "sys.exit(','.join({'numpy', 'scipy', 'pyarrow', 'torch'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_settings_come_as_text_or_values_and_unknown_ones_are_refused() -> None:
    base = spec("synthetic").options
    assert with_settings(base, {"nodes": "1e5", "structure": "0.25", "seed": 7}, "synthetic") == Synthetic(
        nodes=100_000, structure=0.25, seed=7
    )
    assert with_settings(base, {"seed": "9007199254740993"}, "synthetic").seed == 9007199254740993
    assert isinstance(with_settings(base, {"degree": 8}, "synthetic").values()["degree"], float)
    with pytest.raises(OptionError, match=r"option of synthetic 'node'; did you mean 'nodes'"):
        with_settings(base, {"node": "5"}, "synthetic")
    with pytest.raises(OptionError, match="cora has no options, got a=1"):
        with_settings(spec("cora").options, {"a": "1"}, "cora")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"nodes": "many"}, "nodes must be a whole number, got 'many'"),
        ({"nodes": "1.5"}, "nodes must be a whole number, got '1.5'"),
        ({"nodes": "inf"}, "nodes must be a whole number, got 'inf'"),
        ({"degree": "x"}, "degree must be a number, got 'x'"),
        ({"nodes": True}, "nodes must be a whole number, got True"),
        ({"nodes": "0"}, r"nodes must be in 1..2\^31-1, got 0"),
        ({"classes": "2000"}, "classes must be in"),
        ({"degree": "400"}, "degree must be in 0..124.5"),
        ({"degree": "nan"}, "degree must be in"),
        ({"structure": "1.1"}, r"structure must be in -1\.\.1, got 1\.1"),
        ({"features": "nan"}, "features must be in 0..1, got nan"),
        ({"dimensions": "3"}, r"dimensions must be at least classes \(4\), got 3"),
        ({"words": "-1"}, "words must be at least 0"),
        ({"seed": "-1"}, "seed must be at least 0, got -1"),
    ],
)
def test_synthetic_options_have_rules(settings: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        with_settings(Synthetic(), settings, "synthetic")


def test_other_options_have_rules() -> None:
    with pytest.raises(OptionError, match="classes must be at least 2, got 1"):
        Traffic(classes=1)
    with pytest.raises(OptionError, match="largest_classes must be 0"):
        LargestClasses(largest_classes=1)
    for low, high in ((1.0, 1.0), (float("nan"), 1.0), (0.0, float("inf"))):
        with pytest.raises(OptionError, match="finite low < high"):
            ValueRange(low=low, high=high)
    with pytest.raises(OptionError, match="label must be at least 0, or -1 for a set of all labels, got -2"):
        with_settings(spec("ppi").options, {"label": -2}, "ppi")
    with pytest.raises(OptionError, match="finite low < high"):
        with_settings(spec("ppi").options, {"low": 9}, "ppi")

"""Wrong inputs, each refused in one line that says what, which value and what to do; files that are odd and all right.

Nothing on disk changes, no value of a person is printed, and a remedy that names a command works when it is followed.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

from graphldp.cli import app
from graphldp.errors import DataError
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.own import OwnFiles, read_own

FILES = {
    "f.csv": "node,x,z\na,0.1,0.2\nb,0.3,0.4\nc,0.5,0.6\nd,0.7,0.8\n",
    "e.csv": "source,target\na,b\nb,c\nc,d\n",
    "l.csv": "node,label\na,u\nb,v\nc,u\nd,v\n",
    "words.txt": "x\nz\n",
    "p.yaml": "a: 1\n",
    "bad.yaml": "a: [\n",
    "typo.yaml": "datasets: [cora]\nepsilon: [1]\nrows: []\n",
    "axes.yaml": "datasets: [cora]\naxes: {m: [1]}\nrows: []\n",
    "further.yaml": "datasets: [cora]\nfurther: {}\nrows: []\n",
    "fine.yaml": "title: Small\ndatasets: [mine]\nepsilons: [1]\nseeds: 2\nrows: [{method: lpgnn}]\n",
    "levels.csv": "node,level\na,1\n",
    "f.tsv": "node\tx\n",
    "people.csv": "node,x\nalice,0.73519\n",
}
REAL = "data/perturbed/mine/mb/eps=1.parquet"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph, its reports and estimates, and files that are none of these."""
    place = tmp_path_factory.mktemp("wrong")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for name, text in FILES.items():
            (place / name).write_text(text, encoding="utf-8")
        for line in (
            "import mine --features f.csv --edges e.csv --labels l.csv --low 0 --high 1 -q",
            "perturb -d mine -e 1 -q",
            "denoise -d mine -e 1 -q",
        ):
            assert app.main(shlex.split(line)) == 0
    return place


@pytest.fixture
def refused(folder: Path, ldp: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Return a function that runs a command line which has to be refused, and gives its one line."""
    monkeypatch.chdir(folder)

    def run(line: str) -> str:
        before = tree(folder)
        answer = ldp(*shlex.split(line))
        assert (answer.code, answer.out) == (2, ""), answer.err  # type: ignore[attr-defined]
        assert tree(folder) == before
        said: str = answer.line  # type: ignore[attr-defined]
        assert said.startswith("error: ")
        assert "defect" not in said
        return said

    return run


def tree(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


WRONG = r"""
perturb -d mine | --epsilon 1
perturb -e 1 | give either --dataset NAME or --input FILE
perturb -d mine -e 0 | epsilon must be finite and > 0, got 0.0; to send nothing about the data use mechanism 'null'
perturb -d mine -e -1 | epsilon must be finite and > 0, got -1.0
perturb -d mine -e nan | epsilon must be finite and > 0, got nan
perturb -d mine -e inf | to send the data itself 'identity' (epsilon inf)
perturb -d mine -e 1e-17 | epsilon must be at least 1e-10 for each reported value, got 1e-17
perturb -d mine -e 1e300 | epsilon must be at most 500, got 1e+300
perturb -d mine -e x | '--epsilon' / '-e': needs a number, got 'x'; see
perturb -d mine -e 1 -e 2 | --epsilon is given 2 times; leave all but one out
perturb -d mine -e 1,2 | --epsilon takes one budget here, got '1,2'; `ldp experiment` runs a grid of several
perturb -d mine -d cora -e 1 | --dataset is given 2 times; leave all but one out
perturb -d mine -e 1 --output x | name it x.parquet
perturb -d mine -e 1 --output x.feather | name it x.parquet
perturb -d mine -e 1 -m mbb | did you mean 'mb'?
perturb -d mine -e 1 -m MB | did you mean 'mb'?
perturb -d minee -e 1 | did you mean 'mine'?
perturb -d Mine -e 1 | did you mean 'mine'?
perturb -d Cora -e 1 | did you mean 'cora'?
perturb -d mine -e 1 --m 0 | m must be a whole number from 1 to the 2 dimensions, got 0
perturb -d mine -e 1 --m 9 | m must be a whole number from 1 to the 2 dimensions, got 9
perturb -d mine -e 1 --m 1.5 | '--m': needs a whole number, got '1.5'; see
import z --features f.csv --edges e.csv --low x --high 1 | '--low': needs a number, got 'x'
train -d mine -e 1 --processes two | '--processes': needs a whole number, got 'two'
train -d mine -e 1 --max-memory 0 | must be greater than or equal to 0.001, got '0'
perturb -d mine -e 1 --seeds 0 | '--seeds': must be greater than or equal to 1, got '0'
perturb -d mine -e 1 --seeds -2 | greater than or equal to 1
perturb -d mine -e 1 --set m | --set takes KEY=VALUE, got 'm'
perturb -d mine -e 1 --set foo=1 | mb has no option 'foo'; it has: m, fill, m_rule
perturb -d mine -e 1 --set m=1 --set m=1 | --set gives 'm' twice; leave one out
perturb -d mine -e 1 --m 1 --set m=1 | m is given twice
perturb -d mine -e 1 --set train.hidden=3 | under train, or is --hidden of `ldp train`
perturb -d mine -e 1 --set trian.hidden=3 | trian.hidden stands in params.yaml, under train, or is --hidden
perturb -d mine -e 1 --set mechansm=pm | --set has no 'mechansm'; did you mean --mechanism pm?
perturb -d mine -e 1 --set epsilonn=2 | did you mean --epsilon 2?
perturb -d mine -e 1 --set metod=lpgnn | did you mean --method lpgnn?
perturb -d mine -e 1 --set secre=true | did you mean --secure?
perturb -d mine -e 1 --set mechanism.m=1 | --set has no 'mechanism.m'; did you mean --set m=1?
perturb -d mine -e 1 --set mechansm.m=1 | did you mean --set m=1?
run -d mine -e 1 --set mechansm=pm | did you mean --mechanism pm?
run -d mine -e 1 --set methd.filter=pr | did you mean 'method.filter'?
run -d mine -e 1 --set filter=pr | did you mean --set method.filter=pr?
run -d mine -e 1 --set search_points=4 | did you mean --search-points 4?
run -d mine -e 1 --set learning_rat=0.1 | did you mean --search learning_rate=0.1?
search -d mine -e 1 --set hiden=3 | did you mean --hidden 3?
train -d mine -e 1 --search stepps=3 | stepps
calibration -d mine -e 1 --set stesp=3 | did you mean --steps 3?
attack -d mine -m mb -e 1 --set seedss=3 | did you mean --seeds 3?
selection -d mine -e 1 --set mechanim=pm | did you mean --mechanism pm?
audit mb -e 1 --set sample=10 | did you mean --samples 10?
denoise -d mine -e 1 --set metod=lpgnn | did you mean --method lpgnn?
attack -d mine -m mb -e 1 --set mechanism=pm | did you mean --mechanism pm?
selection -d mine -e 1 --set mechanism=pm | did you mean --mechanism pm?
perturb -d mine -e 1 -m mb --set mechanism=pm | the mechanism is given twice, as --mechanism mb and with --set
split -d mine -e 2 -m mb --set mechanism=pm | the mechanism is given twice
split -d mine -e 2 --set epoch=3 | did you mean --epochs 3?
perturb -d mine -e 1 --low 0 | --low goes with --input
perturb -d mine -e 1 --missing 0 | --missing goes with --input
perturb -d mine -e 1 --secure | --secure goes with --input: a public data set has nobody to protect
perturb -d mine -e 1 --method nope | unknown method 'nope'
perturb -d mine -e 1 --method majority | there is nothing to perturb
perturb -d mine -e 1 --set method.rho=1 | method.rho changes a method: name it with --method
perturb -d mine -e 1 --scores f.csv | missing column 'feature'
perturb -d mine -e 1 --output x.csv | name it x.parquet
perturb -d mine -e 1 --output data | is a directory
perturb -d mine -e 1 --sedes 2 | Possible options: --seed, --seeds);
perturb -d mine -e 1 --force | No such option: --force; see
inspect --file x | give FILE itself, without --file
train -d mine -e 1 -m Mb | unknown mechanism 'Mb'; did you mean 'mb'?
denoise -d mine -e 1 -m Mb | unknown mechanism 'Mb'; did you mean 'mb'?
perturb -d mine -e 1 --input f.csv | and not both
perturb --input f.csv -e 1 | --input needs --low and --high
perturb --input f.csv --low 1 --high 0 -e 1 | needs finite low < high
perturb --input gone.csv --low 0 --high 1 -e 1 | gone.csv: there is no such file
perturb --input p.yaml --low 0 --high 1 -e 1 | read from .parquet or .csv files, got '.yaml'
perturb --input f.tsv --low 0 --high 1 -e 1 | got '.tsv'; save them as .csv, with a header and commas, or as .parquet
perturb -d mine -e 1 -m ppm --levels levels.csv | every one of the 4 nodes needs one row, got 1 row
perturb --input f.csv --low 0 --high 1 -e 1 --secure --seeds 3 | --seeds must be 1
perturb --input f.csv --low 0 --high 1 -e 1 --method lpgnn | --method goes with --dataset
perturb --input f.csv --low 0 --high 1 -e 1 --name a/b | --name needs letters, digits
perturb --input f.csv --low 0 --high 2 -e 1 --name mine | of 2 features in 0..2, and the graph mine has 2 in 0..1
perturb --input f.csv --low 0 --high 1 -e 1 --missing 7 | must lie in the range 0..1, got 7
perturb --input f.csv --low 0 --high 1 -e 1 --features-file p.yaml | not in the declared vocabulary
perturb --grid p.yaml -d mine | unknown key 'a'. Valid:
perturb --grid typo.yaml -d mine | unknown key 'epsilon'; did you mean 'epsilons'?
perturb --grid bad.yaml -d mine | bad.yaml is not YAML
perturb --grid gone.yaml -d mine | gone.yaml does not exist
perturb --grid typo.yaml -d mine -e 1 | --epsilon goes without --grid
perturb -d mine -e 1 --seeds 100000000 | seeds may be at most 10,000, got 100,000,000: every one is a set
perturb -d mine -e 1 --search-seeds 100000000 | search.seeds may be at most 10,000, got 100,000,000: every one is a set
denoise -d mine | --epsilon 1
denoise -d mine -e 2 | make it with `ldp perturb --dataset mine --mechanism mb --epsilon 2`
denoise -d minee -e 1 | did you mean 'mine'?
denoise -d mine -e 1 --reports gone.parquet | gone.parquet does not exist; name the file
denoise -d mine -e 1 --reports f.csv | f.csv is not a readable Parquet file
denoise -d mine -e 1 --reports . | . is a folder, not a file
denoise -d mine -e 1 --steps -1 | takes whole numbers from 0 on, such as 2,4; got '-1'
denoise -d mine -e 1 --steps 2 --steps 4 | --steps is given 2 times; several values go with commas: --steps 2,4
denoise -d mine -e 1 --steps 2,2 | --steps names 2 twice; leave one out
denoise -d mine -e 1 --steps 100000000 | at most 1,000, got 100,000,000
denoise -d mine -e 1 --steps two | takes whole numbers from 0 on, such as 2,4; got 'two'
denoise -d mine -e 1 --method lpgn | did you mean 'lpgnn'?
denoise -d mine -e 1 --method majority | there is nothing to denoise
denoise -d mine -e 1 --method base -m pm | `ldp perturb --dataset mine --mechanism pm --epsilon 1`
denoise -d mine -e 1 --set m=3 | got m, which `ldp perturb` takes
denoise -d mine -e 1 --set method.filtr=2 | method 'lpgnn' has no option 'filtr'; did you mean 'filter'? It has: filter
denoise -d mine -e 3 --set method.filtr=2 | did you mean 'filter'?
denoise -d mine -e 3 --set methd.filter=2 | --set has no 'methd.filter'; did you mean 'method.filter'?
perturb -d mine -e 1 --method lpgnn --set method.filtr=2 | did you mean 'filter'?
perturb -d mine -e 1 --set methd.filter=2 | did you mean 'method.filter'?
run -d mine -e 1 --set method.filtr=2 | did you mean 'filter'?
run -d mine -e 1 --set methd.filter=2 | did you mean 'method.filter'?
run -d mine -e 1 --method spectral --set method.evidnce=2 | did you mean 'evidence'?
search -d mine -e 1 --set method.filtr=2 | did you mean 'filter'?
split -d mine --public -e 4 --set method.filtr=2 | did you mean 'filter'?
denoise -d mine -e 1 --links rr --epsilon-links 2 --link-option estimater=hard | did you mean 'estimator'?
train -d mine -e 1 --links rr --epsilon-links 2 --link-option estimater=hard | did you mean 'estimator'?
perturb -d mine -e 1 --links rr --epsilon-links 2 --link-option estimater=hard | did you mean 'estimator'?
search -d mine -e 1 --links rr --epsilon-links 2 --link-option estimater=hard | did you mean 'estimator'?
labels -d mine --links rr --epsilon-links 2 --link-option estimater=hard | did you mean 'estimator'?
split -d mine --public -e 4 --link-option estimater=hard | did you mean 'estimator'?
run -d mine -e 1 --search stps=2 | did you mean 'steps'?
split -d mine --public -e 4 --search stps=2 | which no row of the table has; did you mean 'steps'?
calibration -d mine -e 1 --set method.filtr=2 | did you mean 'filter'?
calibration -d mine -e 1 --set methd.filter=2 | did you mean 'method.filter'?
selection -d mine -e 1 --set methd.score_steps=2 | did you mean 'method.score_steps'?
attack -d mine -m mb -e 1 --set method.filter=hoa | method.filter is of what a server makes of reports: leave it out
attack -d mine -m mb -e 1 --set methd.filter=hoa | did you mean 'method.filter'?
audit mb -e 1 --set method.filter=hoa | method.filter is of what a server makes of reports: leave it out
audit mb -e 1 --set methd.filter=hoa | did you mean 'method.filter'?
denoise -d mine -e 1 --materialize x.csv --steps 2 | name it x.parquet
denoise -d mine -e 1 --materialize x.parquet | choose with --steps, from [0, 2, 4, 8, 16]
denoise -d mine -e 1 --output x.csv | name it x.parquet
denoise -d mine -e 1 --params gone.yaml | gone.yaml does not exist
denoise -d mine -e 1 --params bad.yaml | is not YAML
denoise -d mine -e 1 --params people.csv | must be a mapping, and it is not; name a file of parameters
train -d mine -e 1 -e 1 | --epsilon is given 2 times; leave all but one out
train -d mine | needs --epsilon
train -d mine -e 2 | `ldp denoise --dataset mine --method lpgnn --mechanism mb --epsilon 2`
train -d mine -e 1 | --seeds 10 --search-seeds 2
train -d mine -e 1 --search learning_rates=5 | did you mean 'learning_rate'?
train -d mine -e 1 --search foo=1,2 | search.options has 'foo', which no row of the table has
train -d mine -e 1 --search train.hidde=5 | search.options has 'train.hidde', which no row of the table has
train -d mine -e 1 --search gamma=7 | search.options has 'gamma', which no row of the table has
train -d mine -e 1 --search steps= | got 'steps='
train -d mine -e 1 --search-points 0 | greater than or equal to 1
train -d mine -e 1 --search-points 99999999 | search.points may be at most 10,000, got 99,999,999
train -d mine -e 1 --seeds 99999999 | seeds may be at most 10,000, got 99,999,999
train -d mine -e 1 --task colour | unknown task 'colour'
train -d mine -e 1 --split half | unknown train.split 'half'
train -d mine -e 1 --device tpu | must be one of auto, cpu, cuda, mps, got 'tpu'
train -d mine -e 1 --processes 1000 | got 1000: each holds the data
train -d mine -e 1 --processes 0 | greater than or equal to 1
train -d mine -e 1 --calibrated . | . is a folder, not a file
train -d mine -e 1 --calibrated f.csv | f.csv is not a readable Parquet file; name the file
train -d mine -e 1 --calibrated REAL | has kind 'reports' where 'calibrated' was asked for
train -d mine -e 1 --answers f.csv | leave --answers out here
train -d mine -e 1 --output x.json | name it x.parquet
train -d mine -e 1 --search-strategy best | Valid: grid, random
train -d mine -e 1 --epochs 0 | greater than or equal to 1
train -d mine -e 1 --hidden -1 | greater than or equal to 1
train -d mine -e 1 --hidden 100000000 | train.hidden may be at most 10,000, got 100,000,000
train -d mine -e 1 --jobs 2 | --jobs goes with --grid
train --grid p.yaml -d mine --jobs 1000 | got 1000: each holds the data
train --grid p.yaml -d mine --seeds 3 | --seeds goes without --grid
run -d mine -e 1 --method structure | spends nothing: say --epsilon 0
run -d mine -e 1 --set train.hidden=32 | under train, or is --hidden of this command
run -d mine -e 1 --set foo=3 | mb has no option 'foo'
run -d mine -e 1 --set fil=3 | mb has no option 'fil'; did you mean 'fill'? It has: m, fill, m_rule
run -d mine -e 1 --links rr --epsilon-links 2 --link-option estimater=hard | 'estimator'? It has: report, estimator
run -d mine -e 1 --links blink --epsilon-links 2 --link-option share=1 | most, degree_share
run -d mine -e 1 --link-option estimator=hard | --link-option goes with --links: how people report their
run -d mine -e 1 --epsilon-links 2 | --epsilon-links 2 goes with --links: how people report their links
run -d mine -e 1 --epsilon-labels 1 | --epsilon-labels 1 goes with --labels: how people report their labels, for example
run -d mine -e 1 --method majority | choose another to run
run -d mine -e 1 --seeds 1 | greater than or equal to 2
run -d nothere -e 1 | unknown dataset 'nothere'
run -d mine -e 1 -e 2 | --epsilon is given 2 times; leave all but one out
run -d mine -e 1 --method LPGNN | did you mean 'lpgnn'?
run -d mine | Missing option '--epsilon'
run -d mine -e 1 --search-points 5000000 | search.points may be at most 10,000
run -d mine -e 1 --hidden 100000000 | train.hidden may be at most 10,000, got 100,000,000: every one is a unit
search -d mine -e 1 --search train.hidden=4,100000000 | train.hidden may be at most 10,000, got 100,000,000
search -d mine -e 1 --search foo=1 | search.options has 'foo'
search -d mine -e 1 --search lerning_rate=1 | did you mean 'learning_rate'?
search -d mine -e 1 --search train.hiden=4,8 | did you mean 'train.hidden'?
search -d mine -e 1 --search method.filtr=hoa | did you mean 'method.filter'?
search -d mine -e 1 --search fil=3,4 | did you mean 'fill'?
search -d mine -e 1 --set fil=3 | mb has no option 'fil'; did you mean 'fill'?
split -d mine --public -e 4 --set fil=3 | mb has no option 'fil'; did you mean 'fill'?
perturb -d mine -e 1 --set fil=3 | mb has no option 'fil'; did you mean 'fill'?
audit mb -e 1 --set fil=3 | mb has no option 'fil'; did you mean 'fill'?
attack -d mine -m mb -e 1 --set fil=3 | mb has no option 'fil'; did you mean 'fill'?
calibration -d mine -e 1 --set fil=3 | mb has no option 'fil'; did you mean 'fill'?
selection -d mine -e 1 --set fil=3 | pm has no option 'fil'; did you mean 'fill'?
selection -d mine -e 1 --set method.score_stps=3 | did you mean 'score_steps'?
download synthetic --name x --set node=5 | did you mean 'nodes'?
experiment fine.yaml --only datset=mine | did you mean 'dataset'?
search -d mine -e 1 --method majority | there is nothing to search
predict nowhere --reports f.csv --output p.parquet | nowhere/model.json does not exist
predict nowhere --reports f.csv --output p.json | has the format that its name ends in, .parquet or .csv
predict nowhere --reports f.csv --output p | has the format that its name ends in, .parquet or .csv
merge f.csv -d mine | f.csv is not a readable Parquet file
merge -d mine | Missing argument 'FILE...'
merge REAL -d mine | merge what `ldp perturb --input` writes on devices
merge REAL -d minee | did you mean 'mine'?
inspect gone | gone does not exist
inspect f.csv | f.csv is not an artifact
ledger gone.parquet | gone.parquet does not exist; name artifacts that are there
list dataset | 'datasets', 'data', 'mechanisms'
list Datasets | 'tasks'; did you mean 'datasets'? See 'ldp list --help'
list | Choose from: datasets, data
tables --results nowhere | nowhere/tables/main.csv does not exist; make it with `ldp evaluate`
tables --check --results nowhere | nowhere/tables has no table to compare
tables --format xls | is not one of 'rich', 'md', 'csv'
evaluate --params p.yaml | unknown key 'a'. Valid:
evaluate --params gone.yaml | gone.yaml does not exist
experiment nope | no experiment 'nope'
experiment methods --jobs 1000 | got 1000: each holds the data
reproduce togl:table17 --jobs 1000 | got 1000: each holds the data
experiment typo.yaml | did you mean 'epsilons'?
experiment axes.yaml | unknown key 'axes'; did you mean 'vary'? Valid: seed, seeds, search, train, title,
experiment further.yaml | unknown key 'further': say labels and epsilon_labels
download nothere | unknown dataset 'nothere'
download cora --set foo=1 | cora has no options, got foo=1
download synthetic --set nodes=-4 | nodes must be in 1..2^31-1, got -4
download synthetic --set nodes | --set needs KEY=VALUE, got 'nodes'
download synthetic --name a/b | needs letters, digits
download own | see `ldp import --help`
audit nope -e 1 | unknown mechanism 'nope'
audit mb -e nan | got nan
audit mb -e 1 -e 2 | --epsilon is given 2 times; several values go with commas: --epsilon 1,2
audit mb -e 1 --samples 100000000000 | samples may be at most 4,194,304, got 100,000,000,000: no test draws more
audit --module f.py:f -e 1 --samples 100000000000 | samples may be at most 4,194,304, got 100,000,000,000
audit mb -e 1 --processes 1000 | got 1000: each holds the data
audit mb -e x | takes numbers such as 1,10; got 'x'
audit mb -e 1 --output a.csv | several files are written into a folder: name it a;
attack -d mine -m mb -e 1 -e 2 | --epsilon is given 2 times; several values go with commas: --epsilon 1,2
attack -d mine -m mb -m pm -e 1 | several values go with commas: --mechanism mb,pm
attack -d mine -m mb -e 1 --output a.json | several files are written into a folder: name it a;
attack -d mine -m mb -e 1 -k 1000000 | at most 1,000, got 1,000,000
calibration -d mine -e 1 -k 1000000 | at most 1,000, got 1,000,000: each step is a product with the whole graph
selection -d mine -e 1 --set method.score_steps=1000000 | at most 1,000, got 1,000,000
calibration -d mine -e 1 --output c.parquet | has the format that its name ends in, .csv or .json
calibration -d mine -e 1 -k 2 -k 4 | several values go with commas: --steps 2,4
calibration -d mine -e 1 --method lpgnn --method base | several values go with commas: --method lpgnn,base
selection -d mine -e 1 --by fda --by sma | several values go with commas: --by fda,sma
selection -d mine -e 1 --output t.md | several files are written into a folder: name it t;
attack -d mine -m mb -e 1,1 | names 1 twice; leave one out
attack -d mine -m mb -e x | takes numbers such as 1,10; got 'x'
attack -d mine -m mb | name a graph and a budget
calibration -d mine -e 1,,2 | leave out the comma
selection -d mine -e 1 --by fd | did you mean 'fda'?
select --reports f.csv --output s.parquet | f.csv is not a readable Parquet file
import z --features . --edges e.csv --low 0 --high 1 | .: is a folder
import mine --features f.csv --edges e.csv --low 0 --high 1 | is there already; choose another name, or add --force
import cora --features f.csv --edges e.csv --low 0 --high 1 | choose another name for this graph
import ../x --features f.csv --edges e.csv --low 0 --high 1 | needs letters, digits
import z --edges e.csv --low 0 --high 1 | declare which there are
import z --edges e.csv --dimensions 0 --low 0 --high 1 | greater than or equal to 1
import z --features f.csv --edges e.csv --features-file words.txt --dimensions 2 --low 0 --high 1 | give one of them
import z --features f.csv --edges e.csv --low 0 | Missing option '--high'
import z --features f.csv --edges e.csv --low nan --high 1 | needs finite low < high
import z --features f.csv --edges e.csv --low 0 --hihg 1 | Possible options: --high
Tables | Did you mean 'tables'
prturb | Did you mean 'perturb'?
--nope | No such option: --nope
"""
LINES = [tuple(line.split(" | ", 1)) for line in WRONG.strip().splitlines()]


@pytest.mark.parametrize(("line", "said"), LINES, ids=[line for line, _ in LINES])
def test_a_wrong_command_line_is_one_line_and_changes_nothing(
    line: str, said: str, refused: Callable[[str], str]
) -> None:
    assert said in refused(line.replace("REAL", REAL))


# What stands in a person's file: the error's words, which hold none of her values (0.937 in all that have numbers).
F, E, L = "features", "edges", "labels"
BROKEN = [
    (F, "node,x\na,1\na,0\nb,1\n", "node 'a' stands in two rows; every node needs one row"),
    (F, "node,x\na,0.937\nb,\nc,0\n", "row 2 (node 'b'), column 'x' is NaN or missing; fill it in or drop the row"),
    (F, "node,x\na,hello\nb,1\n", "column 'x' is not numeric (string); turn it into numbers or leave it out"),
    (F, "node,x\na,5.937\nb,1\n", "row 1 (node 'a'), column 'x' lies outside the declared range 0..1"),
    (F, "id,x\na,0.937\nb,0\n", "missing column 'node' (it has 'id' and 1 more)"),
    (F, "node;x\na;0,937\nb;0\n", "its columns are separated by ';'"),
    (F, "node\tx\na\t1\n", "its columns are separated by tabs"),
    (F, "", "the file is empty; it needs a header and rows"),
    (F, "node,x\n", "no rows; every node needs one"),
    (F, "node,x\na,1\nb,0,0.937\n", "a row has 3 fields, and the header has 2"),
    (F, "node,x,label\na,0.937,0\nb,0,1\n", "column 'label' is called like the classes and would become a feature"),
    (F, ",node,x\n0,a,0.937\n1,b,0\n", "column '' is called like the row numbers of a data frame"),
    (F, "Unnamed: 0,node,x\n0,a,1\n1,b,0\n", "column 'Unnamed: 0' is called like the row numbers"),
    (F, "Unnamed: 0.1,node,x\n0,a,1\n1,b,0\n", "column 'Unnamed: 0.1' is called like the row numbers"),
    (F, "idx,node,x\n0,a,0.937\n1,b,0\n", "column 'idx' is called like the row numbers of a data frame"),
    (F, "node,x,class\na,0.937,0\nb,0,1\n", "column 'class' is called like the classes and would become a feature"),
    (F, "node,x,Y\na,0.937,0\nb,0,1\n", "column 'Y' is called like the classes"),
    (F, "node,x,target\na,0.937,0\nb,0,1\n", "declare the features with --features-file"),
    (F, "node\na\nb\n", "no feature columns beside `node`"),
    (F, "node,x,x\na,1,0\nb,0,0\n", "column 'x' stands there twice"),
    (F, "node,x\na,1\n,0\n", "row 2 is empty; every row needs an id"),
    (F, "alice,0.937\nbob,0.12\n", "is its first line a header?"),
    (F, "node,feature,value\na,w,1\na,w,0.937\n", "row 2 (node 'a') has node and feature of an earlier row"),
    (F, "node,feature,value\na,,1\n", "no triple names a feature"),
    (F, "node,x\na,inf\nb,0\n", "lies outside the declared range"),
    (E, "source,target\na,zed\n", "target 'zed' in row 1 is not a node of the features"),
    (E, "src,dst\na,b\n", "missing column 'source' (it has 'src', 'dst')"),
    (E, "source,target,weight\na,b,0.937\n", "unknown column 'weight'"),
    (E, "source,target\n", "a graph needs at least one edge"),
    (E, "source,target\na,a\nb,b\n", "every edge joins a node with itself"),
    (E, "source,target\na,\n", "target: row 1 is empty"),
    (L, "node,label\na,u\na,v\n", "node 'a' has two labels"),
    (L, "node,label\nzed,u\n", "node 'zed' in row 1 is not a node of the features"),
    (L, "node,label\na,0.937\nb,0.75\n", "got fractions; write ids as text, and cut measurements into classes"),
    (L, "node,class\na,u\n", "missing column 'label' (it has 'node', 'class')"),
    (L, "node,label\na,\nb,\n", "no rows with a label; leave the labels out if there are none"),
    (L, "node,label,x\na,u,1\n", "unknown column 'x'; it needs node and label and nothing else"),
]


@pytest.mark.parametrize(("role", "text", "said"), BROKEN)
def test_a_broken_file_is_one_line_without_anybodys_value(
    role: str, text: str, said: str, folder: Path, refused: Callable[[str], str]
) -> None:
    given = {F: "f.csv", E: "e.csv", L: "l.csv", role: "broken.csv"}
    (folder / "broken.csv").write_text(text, encoding="utf-8")
    options = " ".join(f"--{name} {file}" for name, file in given.items() if name != L or role == L)
    line = refused(f"import other {options} --low 0 --high 1")
    assert "broken.csv: " in line
    assert said in line
    assert "937" not in line


def test_remedies_work_when_they_are_followed(folder: Path, ldp: Callable[..., object], tmp_path: Path) -> None:
    """What `ldp train` asks for where nothing fits, command by command, as it stands in the errors."""
    place = tmp_path / "data"
    start = [
        "import",
        "mine",
        "--features",
        folder / "f.csv",
        "--edges",
        folder / "e.csv",
        "--labels",
        folder / "l.csv",
    ]
    assert ldp(*start, "--low", 0, "--high", 1, "--data", place).code == 0  # type: ignore[attr-defined]
    train = ["train", "-d", "mine", "-e", "1", "--epochs", "2", "--data", place, "--quiet"]
    for _ in range(5):
        answer = ldp(*train)
        if answer.code == 0:  # type: ignore[attr-defined]
            break
        for words in re.findall("`ldp (.*?)`", answer.line):  # type: ignore[attr-defined]
            command = [*shlex.split(words), "--data", place, "--quiet"]
            done = ldp(*command)
            for inner in re.findall("`ldp (.*?)`", done.err):  # type: ignore[attr-defined]
                assert ldp(*shlex.split(inner), "--data", place, "--quiet").code == 0  # type: ignore[attr-defined]
    else:
        pytest.fail(answer.err)  # type: ignore[attr-defined]


# Odd, and all right.
PEOPLE = ["a", "b", "c", "d"]
X = [0.0, 0.25, 0.5, 1.0]


def wide(**columns: object) -> pa.Table:
    return pa.table({"node": PEOPLE, "x": X, **columns})


ODD: dict[str, object] = {
    "bom.csv": b"\xef\xbb\xbfnode,x\na,0\nb,0.25\nc,0.5\nd,1\n",
    "crlf.csv": b"node,x\r\na,0\r\nb,0.25\r\nc,0.5\r\nd,1\r\n",
    "quotes.csv": b'"node","x"\n"a","0"\n"b","0.25"\n"c","0.5"\n"d","1"\n',
    "no-newline.csv": b"node,x\na,0\nb,0.25\nc,0.5\nd,1",
    "column-order.csv": b"x,node\n0,a\n0.25,b\n0.5,c\n1,d\n",
    "exponent.csv": b"node,x\na,0e0\nb,2.5e-1\nc,5E-1\nd,1.0\n",
    "plain.parquet": wide(),
    "large-text.parquet": pa.table({"node": pa.array(PEOPLE, pa.large_string()), "x": X}),
    "words.parquet": pa.table({"node": pa.array(PEOPLE).dictionary_encode(), "x": X}),
    "float32.parquet": pa.table({"node": PEOPLE, "x": pa.array(X, pa.float32())}),
    "half.parquet": pa.table({"node": PEOPLE, "x": pa.array(np.array(X, np.float16))}),
    "decimal.parquet": pa.table({"node": PEOPLE, "x": pa.array(X).cast(pa.decimal128(5, 2))}),
    "metadata.parquet": wide().replace_schema_metadata({"pandas": "{}"}),
    "fixed-lists.parquet": pa.table({"node": PEOPLE, "x": pa.array([[x] for x in X], pa.list_(pa.float32(), 1))}),
    "lists.parquet": pa.table({"node": PEOPLE, "x": [[x] for x in X]}),
    "large-lists.parquet": pa.table({"node": PEOPLE, "x": pa.array([[x] for x in X], pa.large_list(pa.float64()))}),
    "triples.csv": b"node,feature,value\nd,x,1\nb,x,0.25\nc,x,0.5\na,,\n",
    "triples-zero.csv": b"node,feature,value\na,x,0\nb,x,0.25\nc,x,0.5\nd,x,1\n",
    "triples.parquet": pa.table({"node": PEOPLE, "feature": ["x"] * 4, "value": X}),
    "chunks.parquet": pa.concat_tables([wide().slice(0, 2), wide().slice(2)]),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_file_is_read_as_what_it_means(name: str, folder: Path, tmp_path: Path) -> None:
    content = ODD[name]
    if isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    else:
        pq.write_table(content, tmp_path / name)
    graph = read_own("odd", OwnFiles(features=tmp_path / name, edges=folder / "e.csv"), low=0, high=1)
    assert list(graph.node_ids or ()) == PEOPLE
    assert graph.features.toarray()[:, 0].tolist() == X


@pytest.mark.parametrize(
    ("ids", "ends"),
    [
        (pa.array([7, 8, 9]), ["7", "8", "9"]),
        (pa.array([7.0, 8.0, 9.0]), ["7", "8", "9"]),
        (pa.array(["007", "8", "9"]), ["007", "8", "9"]),
        (pa.array(["u 7", "ü8", "9,1"]), ["u 7", "ü8", "9,1"]),
        (pa.array([True, False]).cast(pa.int8()), ["1", "0"]),
    ],
)
def test_odd_ids_are_names(ids: pa.Array, ends: list[str], tmp_path: Path) -> None:
    pq.write_table(pa.table({"node": ids, "x": [0.5] * len(ids)}), tmp_path / "f.parquet")
    pq.write_table(pa.table({"source": ends[:-1], "target": ends[1:]}), tmp_path / "e.parquet")
    files = OwnFiles(features=tmp_path / "f.parquet", edges=tmp_path / "e.parquet")
    graph = read_own("odd", files, low=0, high=1)
    assert graph.node_ids == tuple(ends)
    assert graph.edges.shape[1] == len(ends) - 1


def test_lengths_that_differ_are_no_embedding(folder: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"node": PEOPLE, "x": [[0.937], [0.1, 0.2], [0.3], [0.4]]}), tmp_path / "f.parquet")
    with pytest.raises(DataError, match=r"row 2 \(node 'b'\), column 'x' has not 1 numbers") as error:
        read_own("odd", OwnFiles(features=tmp_path / "f.parquet", edges=folder / "e.csv"), low=0, high=1)
    assert "937" not in str(error.value)
    assert read_graph(folder / "data" / "graphs" / "mine").nodes == 4


# How a message's proposal is followed: what it says, and what becomes of the words of the line. `{}` is what was found.
FOLLOWED: tuple[tuple[str, Callable[[list[str], re.Match[str]], list[str]]], ...] = (
    (r"got '?([^';]+?)'?; did you mean '([^']+)'", lambda words, found: _swapped(words, found[1], found[2])),
    (r"unknown [\w. -]+ '([^']+)'; did you mean '([^']+)'", lambda words, found: _swapped(words, found[1], found[2])),
    (r"No such command '([^']+)'. Did you mean '([^']+)'", lambda words, found: _swapped(words, found[1], found[2])),
    (
        r"[Nn]o such option: (--\w+).*Possible options: (--\w+);",
        lambda words, found: _swapped(words, found[1], found[2]),
    ),
    (
        r"several values go with commas: (--\w+) (\S+?)(?:;|$)",
        lambda words, found: _once_more(words, found[1], found[2]),
    ),
    (r"(--\w+) is given \d times; leave all but one out", lambda words, found: _without_first(words, found[1])),
    (r"name it (\S+?)(?:;|$)", lambda words, found: _valued(words, ("--output", "-o", "--materialize"), found[1])),
    (r"for example (--epsilon) (\S+)", lambda words, found: [*words, found[1], found[2]]),
    (r"say (--epsilon) (\S+)", lambda words, found: _valued(words, ("-e", "--epsilon"), found[2])),
    (r"(--[\w-]+) goes with --input", lambda words, found: _left_out(words, found[1])),
    (r"names (\S+) twice; leave one out", lambda words, found: _swapped(words, f"{found[1]},{found[1]}", found[1])),
    (r"'(--[\w-]+)'.*greater than or equal to (\S+?)[,;]", lambda words, found: _valued(words, (found[1],), found[2])),
    (r"from 1 to the (\d+) dimensions", lambda words, found: _valued(words, ("--m",), found[1])),
    (r"must be at (?:least|most) (\S+?)(?:,| for)", lambda words, found: _valued(words, ("-e",), found[1])),
    (r"at most ([\d,]+), got ([\d,]+)", lambda words, found: _swapped(words, _plain(found[2]), _plain(found[1]))),
    (r"needs letters, digits", lambda words, _: [word.replace("a/b", "ab").replace("../x", "x2") for word in words]),
    (r"or add (--force)", lambda words, found: [*words, found[1]]),
    (r"leave (--[\w-]+) out", lambda words, found: _left_out(words, found[1])),
)


def _plain(text: str) -> str:
    return text.replace(",", "")


def _swapped(words: list[str], old: str, new: str) -> list[str]:
    """Put a word in place of another one, wherever in a word of the line it stands."""
    return [re.sub(rf"(?<![\w-]){re.escape(old)}(?![\w-])", new, word) for word in words]


def _places(words: list[str], names: tuple[str, ...]) -> list[int]:
    short = {"--epsilon": "-e", "--dataset": "-d", "--mechanism": "-m", "--steps": "-k", "--output": "-o"}
    known = {*names, *(short[name] for name in names if name in short)}
    return [place for place, word in enumerate(words) if word in known]


def _valued(words: list[str], names: tuple[str, ...], value: str) -> list[str]:
    (place,) = _places(words, names)
    return [*words[: place + 1], value, *words[place + 2 :]]


def _left_out(words: list[str], name: str) -> list[str]:
    (place,) = _places(words, (name,))
    flag = place + 1 == len(words) or words[place + 1].startswith("--")
    return [*words[:place], *words[place + (1 if flag else 2) :]]


def _without_first(words: list[str], name: str) -> list[str]:
    place = _places(words, (name,))[0]
    return [*words[:place], *words[place + 2 :]]


def _once_more(words: list[str], name: str, value: str) -> list[str]:
    for place in reversed(_places(words, (name,))):
        words = [*words[:place], *words[place + 2 :]]
    return [*words, name, value]


def _remedy(words: list[str], said: str) -> list[str] | None:
    """Return the line as the message proposes it; None where it proposes nothing that can be typed."""
    for pattern, follow in FOLLOWED:
        found = re.search(pattern, said)
        if found:
            return follow(words, found)
    return None


# What a followed line still lacks through no fault of the remedy: the graph has four nodes and two features, and the
# reports are of one draw.
STILL = (
    "make it with `ldp (download cora|evaluate)`|Missing option '--epsilon'|lacks draws|fewer than the budget"
    "|nothing to guess|at most the 2 attributes|does not say whose reports"
)
ELSEWHERE = ("download", "experiment", "audit")  # these fetch what is not there, or take long


@pytest.mark.slow
def test_every_remedy_that_can_be_typed_is_right_at_once(
    folder: Path, ldp: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Follow what each refusal proposes, word by word: it is accepted, or something else is wrong with the line."""
    followed, accepted = 0, 0
    for number, (line, _) in enumerate(LINES):
        words = shlex.split(line.replace("REAL", REAL))
        if words[0] in ELSEWHERE:
            continue
        place = tmp_path / str(number)
        shutil.copytree(folder, place)
        monkeypatch.chdir(place)
        said = ldp(*words).line  # type: ignore[attr-defined]
        proposed = re.findall(r"make it with `ldp ((?:perturb|denoise) -[^`]*)`", said)
        for one in proposed:  # that, and the same line again
            inner = ldp(*shlex.split(one), "-q")
            for first in re.findall(r"make it with `ldp (perturb -[^`]*)`", inner.err):  # type: ignore[attr-defined]
                assert ldp(*shlex.split(first), "-q").code == 0, first  # type: ignore[attr-defined]
                inner = ldp(*shlex.split(one), "-q")
            assert inner.code == 0, inner.err  # type: ignore[attr-defined]
        again = words if proposed else _remedy(words, said)
        if again is None or (again == words and not proposed):  # what is wrong stands in a file
            continue
        if again[0] in ("train", "run", "search", "attack", "selection") and "mine" in again:
            again += ["--seeds", "2"] * ("--seeds" not in again)
            again += [] if again[0] in ("attack", "selection") else ["--epochs", "1"] * ("--epochs" not in again)
        answer = ldp(*again)
        followed += 1
        accepted += answer.code == 0  # type: ignore[attr-defined]
        assert answer.code in (0, 2), (line, answer.err)  # type: ignore[attr-defined]
        assert answer.code == 0 or answer.err != said, line  # type: ignore[attr-defined]
        if answer.code == 2:  # type: ignore[attr-defined]
            assert re.search(STILL, answer.err), f"{line} -> {shlex.join(again)}: {answer.err}"  # type: ignore[attr-defined]
        shutil.rmtree(place)
    assert (followed >= 50, accepted >= 25) == (True, True), (followed, accepted)


def test_every_option_of_pairs_has_a_line_with_a_wrong_key() -> None:
    """What takes KEY=VALUE refuses a misspelt key with the nearest one, in each command that has it."""
    missing = []
    for name, made in typer.main.get_command(app.build()).commands.items():  # type: ignore[attr-defined]
        for option in made.params:
            if str(option.metavar).startswith("KEY="):
                flag = option.opts[0]
                lines = [said for line, said in LINES if line.startswith(f"{name} ") and f"{flag} " in line]
                if not any("did you mean" in said or "'estimator'?" in said for said in lines):
                    missing.append(f"{name} {flag}")
    assert sorted(missing) == []

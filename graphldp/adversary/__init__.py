"""What somebody who means harm learns of one person from what left her device, beside what she was promised.

facts_of(features, attributes)        what is to be guessed: whether a person has an attribute
reader_of(device).channel(fact)       the exact law of what one report says about it: advantage, success, posterior
reader_of(device).posterior(fact)     how sure the most telling whole report makes
reader_of(device).odds(entries, fact) what the reports that were sent say of each person
InformedSets                          the same for sets, to somebody who knows all of her other attributes
profile_odds                          which of two whole profiles sent a report
LearnedView, learned_chances          an attacker with everything the server has, and some people's true values
success_bound, advantage_bound, ...   what epsilon-LDP allows any attack
"""

from __future__ import annotations

from graphldp.adversary.bounds import advantage_bound, area_bound, posterior_bound, success_bound
from graphldp.adversary.channel import BLIND, OPEN, Channel
from graphldp.adversary.facts import Fact, facts_of
from graphldp.adversary.learned import LearnedView, fit_logistic, learned_chances, neighbour_votes, public_view
from graphldp.adversary.profiles import profile_odds
from graphldp.adversary.readers import Entries, Reader, reader_of
from graphldp.adversary.sets import InformedSets, SurestSets
from graphldp.adversary.tally import Rate, Tally, ratio

__all__ = [
    "BLIND",
    "OPEN",
    "Channel",
    "Entries",
    "Fact",
    "InformedSets",
    "LearnedView",
    "Rate",
    "Reader",
    "SurestSets",
    "Tally",
    "advantage_bound",
    "area_bound",
    "facts_of",
    "fit_logistic",
    "learned_chances",
    "neighbour_votes",
    "posterior_bound",
    "profile_odds",
    "public_view",
    "ratio",
    "reader_of",
    "success_bound",
]

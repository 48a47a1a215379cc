"""The push consumer suite: the consumers of our own client as the members of a group.

Its steps, oracle and checkers are those of the delivery suite. The members are real consumers that run on
their own. Therefore no machine draws their steps.
"""

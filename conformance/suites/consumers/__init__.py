"""The push consumer suite: the consumers of our own client as the members of a group.

It has only `suite`: its steps, oracle and checkers are those of the delivery suite. The members are real
consumers that run on their own. Therefore there is no target protocol, and no machine that draws their steps.
"""

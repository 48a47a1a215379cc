"""The suite of push consumers: our client's consumers as the members of a group.

It has `suite` alone: its steps, oracle and checkers are those of the suite delivery. The members are real
consumers that run by themselves, so there is neither a target protocol nor a machine that draws their steps.
"""

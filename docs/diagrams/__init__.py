"""The diagrams of the manual: ``python -m docs.diagrams`` draws them anew, for light and for dark pages.

State diagrams are drawn from the tables of ``trio_amqp10.engine.states``, so a step that a table does not have cannot be shown.
"""

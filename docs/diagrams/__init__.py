"""The diagrams of the manual, for light and for dark pages.

``python -m docs.diagrams`` draws them again. State diagrams are drawn from the tables of ``trio_amqp10.amqp10.engine.states``, so a step that a table does not have cannot be shown.
"""

"""The types of the draft of May 2010, as declarations, part by part."""

"""The types of the draft of May 2010, as declarations, part by part; they are those of the draft and not of the final standard."""

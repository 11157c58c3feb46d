"""The manual as a reader sees it: every page in Chromium, at the width of a telephone and of a desktop."""

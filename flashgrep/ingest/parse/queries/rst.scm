; reStructuredText: headings, each of its line alone: the grammar has no nested sections.
(section (title) @name) @heading

; references
(comment) @skip
(literal_block) @skip

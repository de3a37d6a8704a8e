; reStructuredText: headings, each spanning only its line, since the grammar has no nested sections.
(section (title) @name) @heading

; references
(comment) @skip
(literal_block) @skip

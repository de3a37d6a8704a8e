; Org: headings, each the scope of its section.
(section headline: (headline item: (item) @name)) @heading

; references
(block) @skip

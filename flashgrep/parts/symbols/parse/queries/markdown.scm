; Markdown: headings, each the scope of its section.
(section (atx_heading heading_content: (inline) @name)) @heading
(setext_heading heading_content: (paragraph (inline) @name)) @heading

; references
(code_fence_content) @skip
